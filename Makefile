# Everything a person does here, in one place. `make` alone lists the verbs.
.DEFAULT_GOAL := help
.PHONY: help setup demo test bench lint format golden lock wheel clean parts

VENV  := .venv
BIN   := $(VENV)/bin
PIP   := $(BIN)/python -m pip --disable-pip-version-check --require-virtualenv install -qq
SERVE ?= 1
PARTS ?= 1
ARGS  ?=
JOBS  ?= auto
SECONDS ?= 60

help:  ## list these verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.runtime $(VENV)/.project  ## make .venv with the locked dependencies, nothing else

demo: setup  ## load, build, check and export the bundled real month, then serve the portal (SERVE=0: files only)
	$(BIN)/gputally demo --dir demo-workspace $(if $(filter 0 no false,$(SERVE)),--no-serve)

test: $(VENV)/.test $(VENV)/.project parts  ## run every check and test (ARGS="-k money"; JOBS=0 one process; PARTS=0 installs no programs)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

bench: $(VENV)/.test $(VENV)/.project $(VENV)/.bench  ## measure the agent beside its peer and a load beside a bare copy; prints ratios (SECONDS=60)
	$(BIN)/python -m bench $(SECONDS)

lint: $(VENV)/.test $(VENV)/.project  ## ruff, mypy --strict and the import contracts, all of them even if one fails
	@failed=0; \
	$(BIN)/ruff check . || failed=1; \
	$(BIN)/ruff format --check . || failed=1; \
	$(BIN)/mypy || failed=1; \
	$(BIN)/lint-imports || failed=1; \
	exit $$failed

format: $(VENV)/.test  ## rewrite the Python files in the project's format
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .

golden: $(VENV)/.test $(VENV)/.project  ## rewrite tests/golden from the present output; read the diff before you commit
	$(BIN)/python -m pytest --update-golden $(ARGS)

lock: setup  ## write requirements/*.lock from pyproject.toml (UPGRADE=1: newest versions allowed)
	scripts/lock $(if $(UPGRADE),--upgrade)

wheel: $(VENV)/.test  ## build dist/gputally-*.whl
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .

clean:  ## remove everything that make made
	rm -rf $(VENV) demo-workspace build dist *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

parts: $(VENV)/.test
ifeq ($(PARTS),1)
	@PYTHON=$(BIN)/python scripts/install-parts
endif

$(BIN)/python:
	@scripts/make-venv $(VENV)

# Stamps: the second `make demo` starts at once.
$(VENV)/.runtime: requirements/runtime.lock | $(BIN)/python
	@echo "Installing $$(grep -c '==' $<) locked packages (a minute or two when the package cache is cold)"
	@$(PIP) --require-hashes -r $<
	@touch $@

$(VENV)/.test: requirements/test.lock $(VENV)/.runtime
	@echo "Installing the test tools: $$(grep -c '==' $<) locked packages in all"
	@$(PIP) --require-hashes -r $<
	@touch $@

# What we compare ourselves with has a folder of its own: nothing of it can be imported by accident.
$(VENV)/.bench: requirements/bench.lock | $(BIN)/python
	@scripts/make-venv $(VENV)/bench
	@$(VENV)/bench/bin/python -m pip --disable-pip-version-check install -qq --require-hashes -r $<
	@touch $@

$(VENV)/.project: pyproject.toml $(VENV)/.runtime
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
