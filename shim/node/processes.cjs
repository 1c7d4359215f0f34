'use strict';
// Child processes and worker threads: each gets a lane, and the environment that makes it one of the run. And the end
// of this one, before which its lanes are closed.

const childProcess = require('child_process');
const workers = require('worker_threads');
const channel = require('./channel.cjs');
const { current } = require('./jobs.cjs');
const { HANDED, MARK, closeAll } = require('./lanes.cjs');
const { resemble } = require('./likeness.cjs');

// What the launcher sets so that every client comes by the wire: put back where the agent left it out.
const PLUMBING = [
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
  ...['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'AWS_CA_BUNDLE'],
  ...['CARGO_HTTP_CAINFO', 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH', 'HTTPLIB2_CA_CERTS', 'NODE_EXTRA_CA_CERTS'],
  ...['DENO_CERT', 'NODE_USE_ENV_PROXY', 'PYTHONHASHSEED', 'TMPDIR'],
];
const ALWAYS = ['NODE_OPTIONS', 'PYTHONPATH']; // hold something of ours, and perhaps of the agent's

const run = Object.entries(process.env).filter(
  ([name]) => name.startsWith('TAPEPROXY_') || PLUMBING.includes(name) || ALWAYS.includes(name),
);

// The environment `given` to a child, with what makes it part of the run: for the lane `id`.
function childEnvironment(given, id) {
  const env = { ...given };
  for (const [name, value] of run) {
    if (name.startsWith('TAPEPROXY_')) env[name] = value;
    else if (ALWAYS.includes(name)) env[name] = withOurs(name, env[name], value);
    else if (env[name] === undefined) env[name] = value;
  }
  env.TAPEPROXY_LANE = id;
  return env;
}

function withOurs(name, given, ours) {
  if (!given || given.includes(ours) || ours.includes(given)) return given && given.includes(ours) ? given : ours;
  return name === 'PYTHONPATH' ? `${ours}${require('path').delimiter}${given}` : `${ours} ${given}`;
}

// `fn`, or what the agent asked for where we are wrong.
function attempt(where, fn, otherwise) {
  try {
    return fn();
  } catch (error) {
    channel.emit('note', { what: 'child-without-lane', text: `${where}: ${error}`, data: null });
    return otherwise;
  }
}

const pairs = (env) => Object.entries(env).map(([name, value]) => `${name}=${value}`);

function unpaired(list) {
  return Object.fromEntries(list.map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]));
}

// spawn, fork, exec, execFile and cluster all come here.
function patchSpawn() {
  const { prototype } = childProcess.ChildProcess;
  const { spawn } = prototype;
  prototype.spawn = resemble(function spawnLaned(options) {
    const changed = attempt('spawn', () => {
      const env = childEnvironment(unpaired(options.envPairs || pairs(process.env)), current().child('p').id);
      return { ...options, envPairs: pairs(env) };
    }, options);
    return spawn.call(this, changed);
  }, spawn);
}

// The calls that wait have no such place in common.
function patchWaiting(name) {
  const original = childProcess[name];
  childProcess[name] = resemble(function waiting(...args) {
    const changed = attempt(name, () => withEnvironment(args, name === 'execSync'), args);
    return original.apply(this, changed);
  }, original);
}

function withEnvironment(args, isShell) {
  const [file, ...rest] = args;
  const list = !isShell && Array.isArray(rest[0]) ? [rest.shift()] : [];
  const options = rest[0] === undefined || rest[0] === null ? {} : rest[0];
  if (typeof options !== 'object') return args;
  const env = childEnvironment(options.env || process.env, current().child('p').id);
  return [file, ...list, { ...options, env }];
}

// A thread finds its lane in the data that it is given beside its environment.
function patchWorker() {
  const { Worker } = workers;
  workers.Worker = new Proxy(Worker, {
    construct(target, given, made) {
      const changed = attempt('Worker', () => handOver(given, current().child('t').id), given);
      try {
        return Reflect.construct(target, changed, made === workers.Worker ? target : made);
      } finally {
        workers.setEnvironmentData(HANDED, undefined);
      }
    },
  });
}

function handOver(given, id) {
  workers.setEnvironmentData(HANDED, id + MARK);
  const [file, options, ...rest] = given;
  if (!options || !options.env || typeof options.env !== 'object') return given;
  return [file, { ...options, env: childEnvironment(options.env, id) }, ...rest];
}

// After the agent's own listeners, which may still read a clock.
function patchEnd() {
  const { emit, reallyExit } = process;
  process.emit = resemble(function emitThenClose(event, ...args) {
    try {
      return emit.call(this, event, ...args);
    } finally {
      if (event === 'exit') closeAll();
    }
  }, emit);
  process.reallyExit = resemble(function reallyExitClosed(code) {
    closeAll();
    return reallyExit.call(this, code);
  }, reallyExit);
}

function install() {
  patchSpawn();
  for (const name of ['spawnSync', 'execFileSync', 'execSync']) patchWaiting(name);
  patchWorker();
  patchEnd();
}

module.exports = { childEnvironment, install };
