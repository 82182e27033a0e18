# Everything from a fresh machine: Python 3.11 or newer with venv, and make. No GPU, no CUDA toolkit.

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
MORE   := $(VENV)/.frameworks
TORCH  := .venv-torch
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: demo test test-browser test-torch check setup clean
.DEFAULT_GOAL := test

# The main job on an example that is slow on purpose.
demo: $(READY)
	@$(BIN)/sectorwise check examples/transpose.cu

# All checks; what pytest prints comes last.
test: check $(MORE)
	@$(BIN)/pytest --numprocesses=auto

# The pages, in a real browser: Debian's `chromium`, or the one that CHROMIUM names.
test-browser: $(READY)
	@$(BIN)/pytest tests/browser

# Tensors of PyTorch: in an environment of its own, for PyTorch is larger than all else together.
test-torch: $(TORCH)/.ready
	@$(TORCH)/bin/pytest tests/torch

check: $(READY)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

setup: $(READY)

# Made last, so that an installation that broke off is done again.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "sectorwise needs Python 3.11 or newer with venv: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "installing into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# Triton, Numba and CuPy: large, and needed by their tests alone.
$(MORE): $(READY)
	@echo "installing Triton, Numba and CuPy into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[triton,numba,cupy]'
	@touch $@

# Not pinned: the last PyTorch, with the Triton that it brings, and the packages of tools/survey_packages.py.
$(TORCH)/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "sectorwise needs Python 3.11 or newer with venv: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "installing PyTorch and packages with Triton kernels into $(TORCH)"
	@$(PYTHON) -m venv $(TORCH)
	@$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[cuda]" torch pytest syrupy hypothesis liger-kernel flag-gems
	@touch $@

clean:
	rm -rf $(VENV) $(TORCH) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
