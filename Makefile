# Needs make, Python 3.11 or newer and a package index; everything else goes into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := tests/requirements.lock
DATA   ?=
# Real Hermes Agents, made once for each set of pins and dependencies, outside of this tree.
HERMES := tests/adapters/hermes/hosts
PINS   := $(shell { cat $(HERMES)/*.txt; sed -n '/^dependencies/,/^]/p' pyproject.toml; } | cksum | cut -d' ' -f1)
HOSTS  ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/memoryd-hosts/$(PINS)

.PHONY: help demo test check bench bench-recall soak hermes-hosts test-hosts clean

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

demo: $(VENV)/ready   ## four steps on a real transcript: ACCEPTED, RECALLED, REFUSED, RESTORED
	$(BIN)/memoryd demo

test: $(VENV)/ready   ## every test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

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

hermes-hosts: $(HOSTS)/host19/ready $(HOSTS)/host22/ready   ## two releases of Hermes Agent from the package index, each in its environment

test-hosts: $(VENV)/ready hermes-hosts   ## memoryd inside them, with a model on 127.0.0.1
	MEMORYD_HOSTS=$(HOSTS) $(BIN)/python -m pytest -m hosts tests/adapters/hermes

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

# The release itself by its hash; then what it needs; then what memoryd needs, but not memoryd: tests bring the wheel of this tree.
$(HOSTS)/%/ready:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(HERMES)/$*.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check "$$(cut -d' ' -f1 $(HERMES)/$*.txt)" .
	$(@D)/bin/python -m pip uninstall --quiet --yes memoryd
	@touch $@
