# `make` lists the targets. Those that run Python first make the environment in $(VENV), once.

# nproc obeys OpenMP's variables, which set the threads of a process and not the number of cores.
CORES  ?= $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
VENV   ?= .venv
$(if $(strip $(VENV)),,$(error VENV names no folder: choose one with VENV=...))
$(if $(word 2,$(VENV)),$(error VENV has a blank, which make cannot take: choose another folder))
PYTHON ?=
UV     ?= uv
# PyTorch by its lock, whose wheels for Linux bring CUDA; or another build, such as TORCH=torch==2.13.0+cpu,
# without a checksum. A machine with wheels of its own takes the lock's version of them.
TORCH  ?= $(if $(PIP_FIND_LINKS)$(UV_FIND_LINKS),$(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements-deep.lock))
# make env EXTRAS="deep mpi slurm"
EXTRAS ?=
HOURS  ?=
SNAKEMAKE_ARGS ?=
PYTEST_ARGS    ?=

CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11)
PY    := $(VENV)/bin/python
READY := $(VENV)/.fedcore-ready
# As in an activated environment, the environment's programs come first.
IN_ENV := PATH="$(if $(filter /%,$(VENV)),$(VENV),$(CURDIR)/$(VENV))/bin:$$PATH"

# What an extra adds; each lock goes with requirements.lock.
ADDED_deep  := $(or $(TORCH),--no-deps --require-hashes -r requirements-deep.lock)
ADDED_mpi   := --no-deps --require-hashes -r requirements-mpi.lock
ADDED_slurm := --no-deps --require-hashes -r requirements-slurm.lock
$(foreach extra,$(EXTRAS),$(if $(ADDED_$(extra)),,$(error there is no extra '$(extra)': take deep, mpi or slurm)))

ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
  VECLIB_MAXIMUM_THREADS=1 NUMEXPR_NUM_THREADS=1

# Tests differ a thousandfold in length: a process that is done takes over what waits for another.
SHARED := -n $(CORES) --dist worksteal

# The environment has a home of its own.
unexport PYTHONHOME

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# A bar for each rule in the place of thousands of lines; errors stay. LOGGER= shows Snakemake's own.
LOGGER ?= --logger rich
SNAKEMAKE = $(IN_ENV) snakemake $(LOGGER) $(if $(PROFILE),--workflow-profile $(PROFILE))
# make reproduce PAPERS="factorization fedpower"
PAPERS ?=
comma := ,
ONLY = $(if $(PAPERS),--config papers='[$(subst $() ,$(comma),$(strip $(PAPERS)))]')
# A folder of workflow/profiles, such as workflow/profiles/slurm.
PROFILE ?=
# What a run needs is asked for before an environment is made.
RUNS := $(filter quickstart reproduce decide arena,$(MAKECMDGOALS))
$(if $(and $(RUNS),$(PROFILE)),$(if $(wildcard $(PROFILE)/profile.yaml),,$(error \
  there is no $(PROFILE)/profile.yaml: name its folder (PROFILE=workflow/profiles/slurm))))
$(if $(filter decide,$(RUNS)),$(if $(strip $(HOURS)),,$(error say how long: make decide HOURS=3)))
# What Snakemake itself would not say: how to get a plugin, whose name it calls an invalid choice.
define CHECKED
$(if $(PROFILE),@for name in $$(sed -n 's/^executor: *\([a-z-]*\).*/\1/p' "$(PROFILE)/profile.yaml"); do \
  $(IN_ENV) python -c "import snakemake_executor_plugin_$$(echo $$name | tr - _)" 2>/dev/null || { \
    echo "$(PROFILE) needs Snakemake's plugin $$name: $(PY) -m pip install snakemake-executor-plugin-$$name" >&2; \
    exit 1; }; done)
endef

# Adds packages to the environment; the empty line ends the recipe's line.
define added
@if $(UV) --version >/dev/null 2>&1; then $(UV) pip install --python "$(PY)" $(1); \
	else "$(PY)" -m pip install --quiet --disable-pip-version-check $(1); fi

endef

# Whose an environment is: the checkout to which its editable install points, or else the one whose
# make has begun it. None is made where there is something else, and packages reach none of others.
MARK := $(VENV)/.fedcore-checkout
define OWNED
@owner=$$(sed -n 1p "$(VENV)"/lib/python*/site-packages/_fedcore_repro.pth "$(MARK)" 2>/dev/null); \
if { [ -e "$(VENV)" ] || [ -L "$(VENV)" ]; } && [ "$$owner" != "$$(pwd -P)" ]; then \
  echo "$(VENV) is there and not this checkout's, but of $${owner:-something else}:" \
    "choose another folder with VENV=..." >&2; \
  exit 1; \
fi
endef

.PHONY: help env test quickstart reproduce decide arena restore docs lint

help: ## list the targets and variables
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  CORES=$(CORES)  VENV=$(VENV)  PYTHON=a Python 3.11 or later  PROFILE=workflow/profiles/slurm"
	@echo "  EXTRAS=\"deep mpi slurm\"  PAPERS=\"faps fedpower\"  SNAKEMAKE_ARGS=--dry-run  PYTEST_ARGS='-k faps'"
	@echo "  All else is a program of tools/, tests/ or benchmarks/: python tools/verdicts.py --help"

env: $(READY) ## the environment alone; EXTRAS adds PyTorch, MPI or Snakemake's plugin for SLURM
	$(OWNED)
	$(foreach extra,$(EXTRAS),$(call added,$(ADDED_$(extra))))
	@echo "$(VENV): $$($(PY) --version), fedcore and everything in requirements.lock"

quickstart: $(READY) ## each method, table and figure, small, on stand-in data, without a network
	$(CHECKED)
	$(SNAKEMAKE) $(ONLY) --configfile config/quick.yaml --cores $(CORES) $(SNAKEMAKE_ARGS)
	@echo "This was the quick run; 'make reproduce' is the papers' size."
	$(if $(wildcard kept/records/*.jsonl),@echo \
	  "'. $(VENV)/bin/activate; fedcore certify' makes ten minutes of the kept run again and compares.")

reproduce: $(READY) ## every experiment of the five papers and the arena at full size, or of PAPERS
	$(CHECKED)
	$(if $(SNAKEMAKE_ARGS),,@$(IN_ENV) python -m fedcore job forecast $(PAPERS) --cores $(CORES))
	$(SNAKEMAKE) $(ONLY) --cores $(CORES) $(SNAKEMAKE_ARGS)

decide: $(READY) ## more repeats for undecided items: make decide HOURS=3, of PAPERS one or all
	$(CHECKED)
	$(IN_ENV) fedcore decide --hours $(HOURS) --cores $(CORES) $(if $(PAPERS),--paper $(PAPERS)) \
	  $(if $(PROFILE),--profile $(PROFILE))

arena: $(READY) ## every method on the same data, half an hour on two cores, and its page
	$(CHECKED)
	$(SNAKEMAKE) --config papers='[arena]' --cores $(CORES) $(SNAKEMAKE_ARGS)
	$(IN_ENV) python tools/arena_page.py

restore: $(READY) ## put kept histories of long runs into results/, not to run them again
	$(IN_ENV) python tools/kept_histories.py --configfile config/kept.yaml restore

test: $(READY) ## all tests, on CORES processes with one BLAS thread each; the numerical ones twice
	$(IN_ENV) $(ONE_THREAD) pytest $(SHARED) $(PYTEST_ARGS)
	$(IN_ENV) $(ONE_THREAD) python tests/blas_kernels.py other $(SHARED) -m "not slow" $(PYTEST_ARGS)

lint: $(READY) ## style, types, import layers and Snakemake's linter; changes nothing
	$(IN_ENV) ruff check .
	$(IN_ENV) ruff format --check .
	$(IN_ENV) mypy
	$(IN_ENV) lint-imports
	$(IN_ENV) snakefmt --check Snakefile workflow
	$(IN_ENV) snakemake --lint

docs: $(READY) ## this documentation as pages in build/docs, without a network; warnings are errors
	@rm -rf build/docs # pages of modules that are gone
	$(IN_ENV) $(ONE_THREAD) python -m sphinx -W --keep-going -q -c docs/site docs build/docs
	@echo "Open build/docs/index.html in a browser."

# Each candidate is run, because a command may exist and still not work (a version manager's shim).
# A Python newer than the lock's wheels comes last, because it has to compile packages.
$(PY):
	$(OWNED)
	@set -e; \
	found=; \
	for below in 14 99; do for candidate in $(CANDIDATES); do \
	  if [ -z "$$found" ] && "$$candidate" -c "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, $$below))" \
	      >/dev/null 2>&1; then found=$$candidate; fi; \
	done; done; \
	if [ -z "$$found" ]; then \
	  echo "fedcore needs Python 3.11 or later; tried: $(CANDIDATES)." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version) ($$(command -v "$$found"))"; \
	if $(UV) --version >/dev/null 2>&1; then \
	  $(UV) venv --quiet --seed --clear --python "$$("$$found" -c 'import sys; print(sys.executable)')" "$(VENV)"; \
	else \
	  "$$found" -m venv --clear "$(VENV)" || { \
	    echo "This Python cannot make environments; on Debian and Ubuntu: apt install python3-venv" >&2; \
	    rm -rf "$(VENV)"; exit 1; }; \
	fi; \
	pwd -P > "$(MARK)"

$(READY): $(PY) pyproject.toml requirements.lock
	$(OWNED)
	@set -e; \
	if $(UV) --version >/dev/null 2>&1; then \
	  $(UV) pip install --python "$(PY)" --compile-bytecode --require-hashes -r requirements.lock; \
	  $(UV) pip install --python "$(PY)" --quiet --no-deps --no-build-isolation --editable .; \
	else \
	  "$(PY)" -m pip --version >/dev/null 2>&1 || "$(PY)" -m ensurepip >/dev/null; \
	  echo "Installing requirements.lock with pip (a minute or two)"; \
	  "$(PY)" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock; \
	  "$(PY)" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .; \
	fi
	@touch $@
