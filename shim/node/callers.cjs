'use strict';
// Which line of the agent's leads to a call. Knows stacks, and what is not the agent's: Node itself, and this folder.

const FRAMES = 50;

// The frames of the call, innermost first, as V8's CallSites.
function frames() {
  if (Object.isFrozen(Error)) return [];
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = FRAMES;
    Error.prepareStackTrace = (_, found) => found;
    const found = new Error().stack;
    return Array.isArray(found) ? found : [];
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function isAgents(frame) {
  const file = frame.getFileName();
  return Boolean(file) && !file.startsWith('node:') && !file.startsWith(__dirname);
}

// FILE:LINE of the innermost line of the agent's own code, else of a library's; empty where there is none.
function agentsLine() {
  const found = frames().filter(isAgents);
  const frame = found.find((one) => !one.getFileName().includes('node_modules')) || found[0];
  if (frame === undefined) return '';
  return `${frame.getFileName().replace(/^file:\/\//, '')}:${frame.getLineNumber()}`;
}

// Whether a function of this file and name has led to the call.
const isUnder = (file, name) => frames().some((one) => one.getFileName() === file && one.getFunctionName() === name);

// Whether a line of the agent's, or of one of its libraries, is running.
const isRunning = () => frames().some(isAgents);

module.exports = { agentsLine, isRunning, isUnder };
