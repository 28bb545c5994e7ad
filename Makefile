# Everything people do often. `make demo` and `make test` need Python 3.11+, make and Java 17, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz lint format requirements clean faults bench-slot

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(READY)  ## prepare .venv, check Java
	@$(BIN)/python -m mirrorless.local.java

$(READY): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python %s is too old: install Python 3.11 or newer, or name one: make PYTHON=python3.13" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $(READY)

demo: setup  ## two clusters, a million records, replicated and compared record by record
	@$(BIN)/mirrorless demo

test: setup  ## every test: unit, real Kafka brokers, real Spark
	$(BIN)/python -m pytest

fuzz: setup  ## parsers of settings against arbitrary input, about an hour of CPU
	MIRRORLESS_FUZZ_EXAMPLES=$(or $(EXAMPLES),50000) $(BIN)/python -m pytest -m fuzz --timeout 0 tests/unit/settings/test_fuzz.py

faults: setup  ## a copy under load while brokers, drivers, executors and connections are killed (20 minutes)
	$(BIN)/python -m tests.faults

bench-slot: setup  ## what one slot costs: one-record batches, dense batches, two thousand partitions
	$(BIN)/python -m bench.slot

lint: setup  ## ruff (lint and format) and mypy in strict mode
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: setup  ## pin the dependencies anew (needs uv on the path)
	uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --upgrade --no-header --extra dev --output-file requirements/dev.txt
	uv pip compile pyproject.toml --quiet --universal --python-version 3.13 --upgrade --no-header --extra glue --output-file requirements/glue.txt
	uv pip compile pyproject.toml --quiet --universal --python-version 3.13 --upgrade --no-header --extra functions --output-file requirements/functions.txt

clean:  ## remove what was built
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
