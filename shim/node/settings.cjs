'use strict';
// What the launcher told this process (docs/SHIM.md). Read once from the environment; acts on nothing.

const env = process.env;
const MODE = env.TAPEPROXY_MODE || '';
const FORK = MODE === 'fork';
const SEED = Buffer.from(env.TAPEPROXY_SEED || '', 'hex');
// Seeding from less would be predictable.
if (MODE && SEED.length !== 32) throw new Error(`TAPEPROXY_SEED has ${SEED.length} bytes, not 32`);

// By lane, and how many requests it has made when it gets it: another seed.
function seeds(text) {
  const found = new Map();
  for (const line of text.split('\n').filter(Boolean)) {
    const [seed, asked] = line.split(' ', 2);
    const lane = line.slice(seed.length + asked.length + 2);
    if (!found.has(lane)) found.set(lane, new Map());
    found.get(lane).set(Number(asked), Buffer.from(seed, 'hex'));
  }
  return found;
}

function place(text) {
  const at = text.lastIndexOf(':');
  return at > 0 ? { host: text.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(text.slice(at + 1)) } : null;
}

const LANE = env.TAPEPROXY_LANE || '';
// A lane is this process's alone: no child may find it.
delete env.TAPEPROXY_LANE;

module.exports = {
  FORK,
  RECORD: MODE === 'record' || FORK,
  REPLAY: MODE === 'replay' || FORK,
  STRICT: env.TAPEPROXY_STRICT === '1',
  SEED,
  SEEDS: seeds(env.TAPEPROXY_SEEDS || ''),
  LANE,
  SIDECAR: env.TAPEPROXY_SIDECAR || '',
  READS: env.TAPEPROXY_READS || '',
  FORK_FILE: env.TAPEPROXY_FORK || '',
  ORIGIN: BigInt(env.TAPEPROXY_ORIGIN || 0), // ns since 1970 at which monotonic clocks begin
  PROXY: place(env.TAPEPROXY_PROXY || ''),
  // Ports of the wire on loopback, each in front of a base URL.
  FRONTS: new Set((env.TAPEPROXY_FRONTS || '').split(',').filter(Boolean).map(Number)),
  ALLOW: (env.TAPEPROXY_ALLOW || '').split(',').filter(Boolean).map(place).filter(Boolean),
  GUARD: env.TAPEPROXY_GUARD || '',
  LED: env.TAPEPROXY_LED === '1', // all TCP that leaves loopback comes to the wire
  OUTSIDE: new Set((env.TAPEPROXY_OUTSIDE || '').split(',').filter(Boolean).map(Number)),
  CERTIFICATE: env.NODE_EXTRA_CA_CERTS || '',
};
