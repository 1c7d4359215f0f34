'use strict';
// The shim inside a Node process: the order of installation, and the hello line. Knows none of the parts' work.
//
// Everything in this folder is plain CommonJS on Node's own modules, for Node 20.6 and later: NODE_OPTIONS preloads it
// into every process and worker thread. Whatever fails here while recording is noted and swallowed; in a replay the
// process ends with status 97, because a replay without the shim would prove nothing.

const PARTS = ['lanes', 'jobs', 'randomness', 'clock', 'timers', 'routing', 'attribution', 'sessions', 'egress', 'processes'];
const OLDEST = [20, 6]; // by then one can have TLS take over a handle: see routing.cjs

function install() {
  const settings = require('./settings.cjs');
  const channel = require('./channel.cjs');
  for (const name of PARTS) {
    try {
      require(`./${name}.cjs`).install();
    } catch (error) {
      if (settings.REPLAY) throw error;
      channel.emit('note', { what: 'install-failed', text: `${name}: ${error}`, data: { part: name } });
    }
  }
  require('module').syncBuiltinESMExports();
  hello(channel);
}

function hello(channel) {
  const { root } = require('./lanes.cjs');
  const fields = { pid: process.pid, ppid: process.ppid, lane: root().id, node: process.versions.node };
  channel.emit('hello', { ...fields, executable: process.execPath, argv: [process.argv0, ...process.argv.slice(1)] });
}

function isNew() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

const mode = process.env.TAPEPROXY_MODE;
if (['record', 'replay', 'fork'].includes(mode) && isNew()) {
  try {
    install();
  } catch (error) {
    if (mode !== 'record') {
      const why = 'tapeproxy: the shim could not be installed, so this replay would prove nothing: ';
      require('fs').writeSync(2, `${why}${error && error.stack}\n`);
      process.reallyExit(97);
    }
  }
}
