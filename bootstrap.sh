#!/bin/sh
# Make .venv: find a Python >= 3.12 (or let uv fetch one), install the pinned packages and this project.
# Usage: bootstrap.sh [VENV]        (called by the Makefile; nothing here needs to be run by hand)
set -eu
cd "$(dirname "$0")"
venv=${1:-.venv}
[ -z "$(ls -A src/tapeproxy/tapes/ 2>/dev/null)" ] && {
    echo "bootstrap: src/tapeproxy/tapes should be a link to tapes/; clone with core.symlinks=true" >&2
    exit 1
}

# A candidate counts only once it has run: pyenv shims exist for versions that are not selected, and then fail.
works() {
    "$1" -c 'import sys, ensurepip, ssl, venv, zlib; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${TAPEPROXY_PYTHON:-} python3.14 python3.13 python3.12 python3 \
        "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/*/bin/python3; do
        if works "$candidate"; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# The last resort: uv brings a Python of its own. It is itself installed from its wheel where it is missing.
fetch_python() {
    uv=uv
    if ! command -v uv >/dev/null 2>&1; then
        echo "bootstrap: no Python >= 3.12 found; installing uv to fetch one" >&2
        python3 -m venv .bootstrap >&2 && .bootstrap/bin/python -m pip install -q uv >&2 || return 1
        uv=.bootstrap/bin/uv
    fi
    "$uv" python install 3.12 >&2 && "$uv" python find 3.12
}

python=$(find_python || fetch_python) || {
    echo "bootstrap: no Python >= 3.12 was found or could be fetched." >&2
    echo "bootstrap: install one, or name one: make TAPEPROXY_PYTHON=/path/to/python3.12" >&2
    exit 1
}
echo "bootstrap: making $venv with $("$python" -V 2>&1) ($python)" >&2
rm -rf "$venv"
"$python" -m venv "$venv"
echo "bootstrap: installing $(grep -c "^[A-Za-z0-9].*==" requirements.lock) packages, about half a minute" >&2
"$venv/bin/python" -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
# Compiled once, also where Python is told not to write bytecode: else it takes half of every start.
"$venv/bin/python" -m compileall -q proxy addons tapes cli testing shim hints plugin web
touch "$venv/.ready"
