# Two commands on a fresh machine: `make demo` and `make test`. Both make .venv first, once.
VENV := .venv
PY := $(VENV)/bin/python
SOAK := .venv-soak
MATRIX := .venv-matrix
PYTEST_ARGS ?=
# More workers than most machines of CI have cores: much of the suite waits for processes. `make test JOBS=0` runs in one.
JOBS ?= 3

.PHONY: install test demo lint types check bench bench-viewer soak matrix lock clean help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.ready: bootstrap.sh requirements.lock pyproject.toml
	./bootstrap.sh $(VENV)

install: $(VENV)/.ready ## make .venv with .venv/bin/tapeproxy

test: install ## run the test suite
	$(PY) -m pytest -q -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

demo: install ## record a real SDK agent, replay it offline, verify, show a violation
	$(PY) examples/demo.py

lint: install ## ruff: style and formatting
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: install ## mypy --strict and pyright
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy tests/hints/usage.py
	$(VENV)/bin/basedpyright

check: lint types test ## what CI runs

# The agents of the long runs have an environment of their own, with nothing of ours in it.
$(SOAK)/.ready: requirements-soak.lock | $(VENV)/.ready
	rm -rf $(SOAK)
	$(PY) -m venv $(SOAK)
	$(SOAK)/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements-soak.lock
	touch $@

soak: install $(SOAK)/.ready ## the long runs that the suite leaves out; makes .venv-soak first, once
	$(PY) -m pytest -q -m soak -n $(JOBS) $(PYTEST_ARGS)

# The clients of the matrix have theirs, for they need other versions; those of Node are beside what the runs tell.
$(MATRIX)/.ready: requirements-matrix.lock | $(VENV)/.ready
	rm -rf $(MATRIX)
	$(PY) -m venv $(MATRIX)
	$(MATRIX)/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements-matrix.lock
	touch $@

.matrix/node/.ready: tests/matrix/agents/node/package.json tests/matrix/agents/node/package-lock.json
	mkdir -p $(@D)
	cp $^ $(@D)
	if command -v npm >/dev/null; then cd $(@D) && npm ci --no-audit --no-fund --ignore-scripts; fi
	touch $@

matrix: install $(MATRIX)/.ready .matrix/node/.ready ## record and replay every client; writes the table of docs/CLIENTS.md, whatever failed
	@status=0; $(PY) -m pytest -q -m soak -n $(JOBS) $(PYTEST_ARGS) tests/matrix || status=$$?; \
	PYTHONPATH=tests $(PY) -m matrix.table && exit $$status

bench: install ## measure against peers, side by side; writes docs/BENCHMARKS.md
	$(PY) -m bench

bench-viewer: install ## how fast the viewer's page of a run of 20,000 exchanges is; needs Chromium
	$(PY) bench/viewer.py

lock: ## pin every dependency with its hashes (needs uv)
	uv pip compile --universal --python-version 3.12 --generate-hashes -q \
	    --custom-compile-command 'make lock' --extra record --extra view --group dev pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.12 --generate-hashes -q \
	    --custom-compile-command 'make lock' --group soak -o requirements-soak.lock
	uv pip compile --universal --python-version 3.12 --generate-hashes -q \
	    --custom-compile-command 'make lock' --group matrix -o requirements-matrix.lock

clean: ## remove what install made
	rm -rf $(VENV) $(SOAK) $(MATRIX) .matrix .bootstrap
