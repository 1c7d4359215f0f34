'use strict';
// Makes a replacement look like what it stands for.

// `made`, with the name, length and own properties (util.promisify.custom, say) of `original`.
function resemble(made, original) {
  for (const key of Reflect.ownKeys(original)) {
    if (key === 'prototype' && !Object.hasOwn(made, 'prototype')) continue;
    const wanted = Object.getOwnPropertyDescriptor(original, key);
    const found = Object.getOwnPropertyDescriptor(made, key);
    if (!found || found.configurable) Object.defineProperty(made, key, wanted);
  }
  return made;
}

module.exports = { resemble };
