# `make demo` and `make test` need Python 3.11+ with venv, and a package index that pip can reach.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python3.14; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# DGL publishes wheels for this version. The PyG environment uses it too.
PYTHON_DGL ?= $(shell python3.11 -c 'import venv, ensurepip; print("python3.11")' 2>/dev/null)

VENV := .venv
BIN := $(VENV)/bin
# Python writes bytecode at a module's first import. Most installed modules are never imported, so
# compiling all of them during the installation would waste time.
INSTALL := -m pip --disable-pip-version-check install --quiet --no-compile
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python $(INSTALL)
DGL := .venv-dgl
BOLT := .venv-bolt
PYG := .venv-pyg
TF := .venv-tf
# With ASTERISM_REQUIRE_ALL=1 a test that would be skipped fails, and so does a missing environment of
# DGL, GraphBolt, PyG or TensorFlow.
PYTEST := $(BIN)/python -m pytest $(if $(ASTERISM_REQUIRE_ALL),--require-all)
# Tests spend most of their time waiting for leases and for starting processes, so four workers keep two
# cores busy. All tests of one file run in the same worker.
TEST_WORKERS ?= 4
BENCHMARKS = $(filter-out __%,$(notdir $(basename $(wildcard tests/benchmarks/*.py))))
KERNEL_TESTS = tests/distributions \
	$(addprefix tests/unit/asterism_graphkit/test_,alias_build.py bounds_checks.py gather_scatter.py graph_labels.py khop.py partition_choice.py \
	relabel.py simd.py visit_counts.py) \
	$(addprefix tests/unit/storaged/test_,filter_cache.py indexes.py induced.py induced_bitset.py kernels.py khop_single_type.py \
	labor.py temporal.py walk_steps.py) \
	tests/unit/asterism/test_epoch_cursor.py tests/unit/asterism_io/test_unix_sockets.py tests/unit/graphd/test_split_merge.py
CODE = proto client services tests examples
PROTOS = $(wildcard proto/asterism_proto/v1/*.proto)

.PHONY: help venv demo test run-tests test-slow test-bounds lint format stubs dgl-env bolt-env pyg-env tf-env rivals-env docs bench clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Asterism needs Python 3.11 or newer with venv; install it, or say make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.all: pyproject.toml services/pyproject.toml | $(BIN)/python
	$(PIP) -e '.[all]' -e ./services
	@touch $@

$(VENV)/.dev: pyproject.toml services/pyproject.toml | $(BIN)/python
	$(PIP) -e '.[dev]' -e ./services
	@touch $@ $(VENV)/.all

venv: $(VENV)/.dev  ## create .venv with all development dependencies

demo: $(VENV)/.all  ## load, build, sample and export a shop's graph; the first run takes some minutes
	$(BIN)/python examples/demo.py

test: lint run-tests  ## lint, then run all tests except the slow ones; -j2 runs both in parallel

# The conftest orders the files, longest running first. xdist would start with the files that have the
# most tests.
run-tests: $(VENV)/.dev dgl-env bolt-env pyg-env tf-env
	$(PYTEST) -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder -m 'not slow'

test-slow: $(VENV)/.dev dgl-env bolt-env pyg-env tf-env  ## run only the slow tests
	$(PYTEST) -m slow

test-bounds: $(VENV)/.dev  ## run kernel tests and hostile requests with bounds checks; the first run compiles for minutes
	ASTERISM_CHECK_BOUNDS=1 $(PYTEST) -m 'not slow' -o timeout=3600 $(KERNEL_TESTS)
	$(PYTEST) -m slow -k checking_build tests/integration/requests/test_hostile_store_requests.py

lint: $(VENV)/.dev  ## check formatting, rules and types
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

format: $(VENV)/.dev  ## format the code and apply automatic fixes
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

stubs: $(VENV)/.dev  ## regenerate the protobuf modules and the stub of the asynchronous client
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=proto --pyi_out=proto $(PROTOS)
	$(BIN)/python -m tests.kit.async_stubs

$(DGL)/.done: tests/kit/dgl/requirements.txt
	$(PYTHON_DGL) -m venv $(DGL)
	$(DGL)/bin/python $(INSTALL) -r $<
	@touch $@

dgl-env:  ## create .venv-dgl with the real DGL, for the tests of the export
	@if [ -n "$(PYTHON_DGL)" ] && $(MAKE) --no-print-directory $(DGL)/.done; then :; else \
		rm -rf $(DGL); echo "no environment with real DGL (it needs python3.11 and its wheels); tests against it are skipped" >&2; \
		test -z "$(ASTERISM_REQUIRE_ALL)"; fi

# This environment reuses the packages of .venv-dgl, most of all its large torch. torchdata 0.9.0 is the
# last release with the data pipes that GraphBolt needs. Both packages are installed without their
# dependencies, because they would install another torch.
$(BOLT)/.done: tests/kit/dgl/graphbolt.txt $(DGL)/.done
	$(PYTHON_DGL) -m venv $(BOLT)
	$(BOLT)/bin/python -c 'import site, sys; open(site.getsitepackages()[0] + "/with_dgl.pth", "w").write(sys.argv[1])' \
		"$$($(DGL)/bin/python -c 'import site; print(site.getsitepackages()[0])')"
	$(BOLT)/bin/python $(INSTALL) --no-deps dgl==2.1.0 torchdata==0.9.0
	$(BOLT)/bin/python $(INSTALL) -r $<
	@touch $@

bolt-env: dgl-env  ## create .venv-bolt with GraphBolt's Python code, for the tests of the adapter
	@if [ -n "$(PYTHON_DGL)" ] && $(MAKE) --no-print-directory $(BOLT)/.done; then :; else \
		rm -rf $(BOLT); echo "no environment with GraphBolt (it needs python3.11 and DGL's wheels); tests against it are skipped" >&2; \
		test -z "$(ASTERISM_REQUIRE_ALL)"; fi

$(PYG)/.done: tests/kit/pyg/requirements.txt tests/kit/pyg/compile_samplers.py pyproject.toml services/pyproject.toml
	$(PYTHON_DGL) -m venv $(PYG)
	$(PYG)/bin/python $(INSTALL) -r $< -e '.[ingest]' -e ./services
	@$(PYG)/bin/python tests/kit/pyg/compile_samplers.py || { \
		echo "PyG's own samplers could not be compiled (they need g++); tests and benchmarks beside them are left out" >&2; \
		test -z "$(ASTERISM_REQUIRE_ALL)"; }
	@touch $@

pyg-env:  ## create .venv-pyg with the real PyG and this checkout, for the tests of the adapters
	@if [ -n "$(PYTHON_DGL)" ] && $(MAKE) --no-print-directory $(PYG)/.done; then :; else \
		rm -rf $(PYG); echo "no environment with real PyG (it needs python3.11 and torch's wheels); tests against it are skipped" >&2; \
		test -z "$(ASTERISM_REQUIRE_ALL)"; fi

$(TF)/.done: tests/kit/tensorflow/requirements.txt pyproject.toml services/pyproject.toml
	$(PYTHON_DGL) -m venv $(TF)
	$(TF)/bin/python $(INSTALL) -r $< -e '.[ingest]' -e ./services
	@touch $@

tf-env:  ## create .venv-tf with the real TensorFlow and this checkout, for the tests of the adapter
	@if [ -n "$(PYTHON_DGL)" ] && $(MAKE) --no-print-directory $(TF)/.done; then :; else \
		rm -rf $(TF); echo "no environment with real TensorFlow (it needs python3.11 and its wheel); tests against it are skipped" >&2; \
		test -z "$(ASTERISM_REQUIRE_ALL)"; fi

# The C++ library of GraphBolt is published only for these releases of torch. They have no CPU-only
# build, so the environment takes 5 GB.
rivals-env: dgl-env pyg-env  ## create the environments of the comparison benchmark: DGL, PyG, PecanPy and GraphBolt; unavailable ones are left out
	-@$(PYTHON_DGL) -m venv .venv-pecanpy && .venv-pecanpy/bin/python $(INSTALL) pecanpy==2.0.9
	-@$(PYTHON_DGL) -m venv .venv-graphbolt && .venv-graphbolt/bin/python $(INSTALL) \
		torch==2.2.1 'numpy<2' dgl==2.1.0 torchdata==0.7.1 pandas pydantic pyyaml 'setuptools<71'

docs: $(VENV)/.dev  ## build the documentation site in site/; broken links fail
	$(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.dev  ## run the benchmarks and print ratios side by side
	@set -e; for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m tests.benchmarks.$$name; done

clean:  ## remove everything that make created
	rm -rf $(VENV) $(DGL) $(BOLT) $(PYG) $(TF) .venv-pecanpy .venv-graphbolt demo-data site dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find proto client services tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
