# Everything from a bare machine: Python 3.11 or newer, and make. `make` alone lists what there is.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first imported: most never are, and pip would compile all of them.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Two test workers with one BLAS thread each; more threads than cores only wait for each other. Each begins with a half of
# its own: what the tests of a file share is made once, and the two do not compile the same kernels at the same time.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1 NUMBA_NUM_THREADS=1

# Bytecode is kept, whatever the environment says: else every process that a test starts compiles NumPy, SciPy and
# Numba again, 4 s each.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install audit test lint docs gallery notebooks commands wheel container-wheels bench reproduce clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.core ## make .venv and install unveil into it
	@echo "Installed: $(BIN)/unveil --help"

audit: $(VENV)/.core ## may encodings be released? simulate, attack, score, verdict
	@$(BIN)/unveil audit

test: $(VENV)/.dev ## run the tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.dev ## ruff, mypy --strict, the one-way flow of rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs ## build the documentation into docs/_build, every warning an error
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "Built: docs/_build/html/index.html"

gallery: $(VENV)/.dev ## draw every picture again: gallery, notebooks, tutorial, screenshots of the report
	$(ONE_THREAD) $(BIN)/python -m examples.make_gallery
	$(ONE_THREAD) $(BIN)/python -m tools.make_tutorial
	$(ONE_THREAD) $(BIN)/python -m tools.make_notebooks
	$(ONE_THREAD) $(BIN)/python -m tools.make_screenshots

notebooks: $(VENV)/.dev ## run every notebook from top to bottom
	$(ONE_THREAD) $(BIN)/python -m tools.make_notebooks --check

commands: $(VENV)/.dev ## run every command of README and docs as it is printed
	$(ONE_THREAD) $(BIN)/python -m tools.docs_commands

wheel: ## build the wheel, install it in a new environment, use it outside the repository
	PYTHON=$(PYTHON) tools/check_wheel.sh

container-wheels: $(VENV)/.made ## wheels of unveil and all it needs, for container/Containerfile
	rm -rf dist/wheels
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir dist/wheels '.[images]'

bench: $(VENV)/.bench ## compare with peers, all in one run
	$(BIN)/python -m benchmarks.run

reproduce: $(VENV)/.core ## the paper's figures and numbers, a quick version; `python -m experiments.reproduce all --full` is the real one
	$(BIN)/python -m experiments.reproduce all

clean: ## remove .venv and every cache
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp per set of extras, so that a second call is instant and a changed pyproject.toml installs again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "unveil needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "could not make $(VENV): install the venv module (Debian: apt install python3-venv)" >&2; exit 1; }
	@touch $@

$(VENV)/.core: pyproject.toml | $(VENV)/.made
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	$(PIP) --editable '.[images,sdp,dask,dev]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.made
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/.made
	$(PIP) --editable '.[sdp,dask,bench]'
	@touch $@
