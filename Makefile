# Needs make, Python 3.11 or newer and a package index; everything else goes into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := tests/requirements.lock
DATA   ?=

.PHONY: help demo test check bench bench-recall soak clean

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

demo: $(VENV)/ready   ## four steps on a real transcript: ACCEPTED, RECALLED, REFUSED, RESTORED
	$(BIN)/memoryd demo

test: $(VENV)/ready   ## every test
	$(BIN)/python -m pytest

check: $(VENV)/ready  ## style, types, import contracts, documentation
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -q tests/architecture

bench: $(VENV)/ready  ## the table of figures: bar, stretch, got, verdict
	$(BIN)/python tests/benchmarks/bench.py

bench-recall: $(VENV)/ready  ## recall quality on a data set: DATA=conversations.json
	@test -n "$(DATA)" || { echo "usage: make bench-recall DATA=conversations.json" >&2; exit 64; }
	$(BIN)/python -m tests.benchmarks.locomo $(DATA)

soak: $(VENV)/ready   ## crash and disk-fault rounds without sampling; long
	$(BIN)/python -m pytest -m soak

clean:          ## removes what make and the tools wrote
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

$(VENV)/locked: $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memoryd needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	@touch $@

$(VENV)/ready: $(VENV)/locked pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
