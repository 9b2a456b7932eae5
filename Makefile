# make demo: sets up, trains a scene, shows pixels.   make test: sets up, runs the fast tests.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.diorama-is-set-up
CXX_FILES := $(wildcard csrc/*.cpp csrc/*.h csrc/bindings/*.cpp csrc/bindings/*.h)
INPUTS := pyproject.toml constraints.txt CMakeLists.txt $(CXX_FILES)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
PY_FILES := src tests tools benchmarks $(wildcard examples)

.PHONY: demo test test-slow check check-format check-lint check-types check-stub check-layers \
        format bench setup venv clean

demo: setup
	$(BIN)/diorama demo

test: setup
	$(BIN)/python -m pytest -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

# `make -k check` goes on after a failure.
check: check-format check-lint check-types check-stub check-layers

check-format: setup
	$(BIN)/ruff format --check $(PY_FILES)
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

check-lint: setup
	$(BIN)/ruff check $(PY_FILES)

check-types: setup
	$(BIN)/basedpyright

check-stub: setup
	$(BIN)/python tools/stub.py --check

check-layers: setup
	$(BIN)/python tools/layers.py

format: setup
	$(BIN)/ruff format $(PY_FILES)
	$(BIN)/ruff check --fix $(PY_FILES)
	$(BIN)/clang-format -i $(CXX_FILES)
	$(BIN)/python tools/stub.py

bench: setup
	$(BIN)/diorama bench kernels

setup venv: $(STAMP)

# Two steps, because the package is built without build isolation: isolated, every build would
# bring its own copy of nanobind at a new path and compile everything again.
$(STAMP): $(INPUTS) | $(BIN)/python
	@echo "Setting up .venv (the first time this downloads torch and other packages)"
	@$(PIP) scikit-build-core nanobind cmake ninja
	@$(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis src/diorama/_native/*.so
