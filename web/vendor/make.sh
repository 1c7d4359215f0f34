#!/bin/sh
# Fetch the libraries of the page from the npm registry, and put them here as plain scripts: one global each.
# Usage: web/vendor/make.sh       (only to change a version; what it makes is committed)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
htm=3.1.1 preact=10 hashes=1.8.0  # htm brings a preact of its own; its licence is fetched
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "htm@$htm" "preact@$preact" "@noble/hashes@$hashes" >/dev/null
mkdir htm preact hashes
tar xzf preact-*.tgz -C preact
tar xzf "htm-$htm.tgz" -C htm && tar xzf "noble-hashes-$hashes.tgz" -C hashes

# htm's standalone build holds preact and its hooks: https://github.com/developit/htm
{
    echo "/* htm $htm with preact, https://github.com/developit/htm. Licences: LICENSES.txt */"
    cat htm/package/preact/standalone.umd.js
} >"$here/htm-preact.js"

# The CommonJS files of BLAKE3, as they are, within a loader of a few lines.
{
    echo "/* @noble/hashes $hashes, https://github.com/paulmillr/noble-hashes. Licence: LICENSES.txt */"
    echo "var nobleBlake3 = (function () {"
    echo "  var made = {}, files = {};"
    echo "  function load(name) {"
    echo "    if (!made[name]) { made[name] = {}; files[name](made[name], function (other) { return load(other.replace('./', '').replace('.js', '')); }, { exports: made[name] }); }"
    echo "    return made[name];"
    echo "  }"
    for file in crypto utils _u64 _md _blake blake2 blake3; do
        echo "  files['$file'] = function (exports, require, module) {"
        grep -v '^//# sourceMappingURL' "hashes/package/$file.js"
        echo "  };"
    done
    echo "  files['@noble/hashes/crypto'] = files['crypto'];"
    echo "  return load('blake3');"
    echo "})();"
} >"$here/noble-blake3.js"

{
    echo "htm $htm"
    echo
    cat htm/package/LICENSE
    echo
    echo "preact, within htm's build"
    echo
    cat preact/package/LICENSE
    echo
    echo "@noble/hashes $hashes"
    echo
    cat hashes/package/LICENSE
} >"$here/LICENSES.txt"
