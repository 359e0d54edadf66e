# Everything runs in .venv, made on first use. A stamp per environment remembers what was installed, so that the
# second run starts at once; a change of pyproject.toml or constraints/ installs again.
#
#   PYTHON=python3.12                            another interpreter (>= 3.11)
#   CONSTRAINTS=constraints/cuda.txt             NVIDIA machines
#   TORCH_INDEX=https://download.pytorch.org/whl/cpu   where pip would otherwise fetch torch with CUDA
#   EXTRAS=gpu                                   more to install with the tests: gpu, data, render, ...
#   ARGS="-k rng"                                passed on to pytest, manikin demo, or the benchmark

comma := ,
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
CONSTRAINTS ?= constraints/cpu.txt
TORCH_INDEX ?=
JOBS ?= 2
EXTRAS ?=
ARGS ?=
VENV ?= .venv

BIN := $(VENV)/bin
BUILD := $(basename $(notdir $(CONSTRAINTS)))
RUN_STAMP := $(VENV)/.installed-run-$(BUILD)
DEV_STAMP := $(VENV)/.installed-dev-$(BUILD)$(if $(EXTRAS),-$(EXTRAS))
INPUTS := pyproject.toml $(wildcard constraints/*.txt)
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q -c $(CONSTRAINTS) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

.PHONY: help demo test lint style types layers docs bench clean

help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(RUN_STAMP)  ## Collect, replay, evaluate and film PickCube; prints where the report lies
	@$(BIN)/manikin demo $(ARGS)

test: $(DEV_STAMP)  ## Run the test suite
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations 15 $(ARGS)

lint: style types layers  ## Style and formatting, types, and the layers (each also on its own)

style: $(DEV_STAMP)
	@$(BIN)/ruff check --output-format concise .
	@$(BIN)/ruff format --check .

types: $(DEV_STAMP)
	@$(BIN)/mypy

layers: $(DEV_STAMP)
	@$(BIN)/lint-imports --no-cache

docs: $(DEV_STAMP)  ## Build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

bench: $(DEV_STAMP)  ## Measure throughput on this machine
	@$(BIN)/python benchmarks/throughput.py $(ARGS)

clean:  ## Remove the environment, caches and built files
	rm -rf $(VENV) demo site build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"manikin needs Python 3.11 or newer, this is {sys.version.split()[0]}; name another with: make PYTHON=...")'
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# The development environment contains the one of the demo.
$(RUN_STAMP): $(INPUTS) | $(BIN)/python
	@echo "Installing manikin (a few minutes the first time) ..."
	@rm -f $(VENV)/.installed-*
	@$(PIP) -e ".[video]"
	@touch $@

$(DEV_STAMP): $(INPUTS) | $(BIN)/python
	@echo "Installing manikin and what its tests need (a few minutes the first time) ..."
	@rm -f $(VENV)/.installed-*
	@$(PIP) -e ".[dev$(if $(EXTRAS),$(comma)$(EXTRAS))]"
	@touch $(RUN_STAMP) $@
