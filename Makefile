# Each target sets up what it needs, in .venv and node_modules; nothing else on the machine changes.
# It needs Python 3.11 or newer, and npm for the parts that come from there.

.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
GUEST := codemode/sandbox/guest
SERVERS := fixtures/servers/npm

READY := $(VENV)/.ready
ASSETS := codemode/sandbox/assets/MANIFEST.json
NPM_READY := $(SERVERS)/node_modules/.package-lock.json

.PHONY: help demo test check lint format coverage bench bench-peers build clean

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) $(ASSETS) $(NPM_READY) ## run the shop's cells and show what they did
	$(RUN) -m fixtures.demo

test: $(READY) $(ASSETS) $(NPM_READY) ## run the tests; ARGS="-k name" chooses
	$(RUN) -m pytest -n auto $(ARGS)

check: lint test ## everything that must hold before a commit

lint: $(READY) $(ASSETS) ## style, types, imports and budgets
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(RUN) -m pytest -q tests/contract/test_house.py

format: $(READY) ## mend what can be mended by itself
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

coverage: $(READY) $(ASSETS) $(NPM_READY) ## run the tests and say which lines and branches they missed
	$(VENV)/bin/coverage run -m pytest
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report

bench: $(READY) $(ASSETS) ## measure, print a table; ARGS="--json --quick" changes how
	$(RUN) -m bench $(ARGS)

bench-peers: $(READY) $(ASSETS) ## install what we stand beside, each in an environment of its own, then measure
	$(RUN) -m bench --install-peers $(ARGS)

build: $(READY) $(ASSETS) ## make the source distribution and the wheel in dist/
	$(RUN) -m build --outdir dist

clean: ## remove all that the other targets made
	rm -rf $(VENV) $(SERVERS)/node_modules codemode/sandbox/assets dist build .bench
	rm -rf .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("codemode needs Python 3.11 or newer; say make PYTHON=/path/to/python")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade 'pip>=25.1'
	$(RUN) -m pip install --quiet --editable . --group dev
	@touch $@

$(ASSETS): $(READY) hatch_build.py hatch_engine.py $(GUEST)/bundle.mjs $(GUEST)/acorn.js $(GUEST)/sucrase.js $(GUEST)/package.json $(GUEST)/package-lock.json
	$(RUN) hatch_build.py
	@touch $@

$(NPM_READY): $(SERVERS)/package.json $(SERVERS)/package-lock.json
	@command -v npm >/dev/null || { echo 'the demo and the tests need npm for the MCP reference server; install Node.js' >&2; exit 1; }
	npm ci --prefix $(SERVERS) --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
