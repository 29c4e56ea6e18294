# `make` lists the targets. Those that run Python first make the environment in $(VENV), once.

# nproc obeys OpenMP's variables, which set the threads of a process and not the number of cores.
CORES  ?= $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
VENV   ?= .venv
PYTHON ?=
UV     ?= uv
TORCH  ?= torch==2.13.0
# What locks of extras hold: the packages that the extras add to requirements.lock.
MPI    := mpi4py mpich
SLURM  := snakemake-executor-plugin-slurm snakemake-executor-plugin-slurm-jobstep
# Not docs, whose myst-parser brings a newer markdown-it-py, nor deep, whose PyTorch takes 5 GB.
OLDEST ?= workflow slurm dev mpi
SNAKEMAKE_ARGS ?=
PYTEST_ARGS    ?=
LOCK_ARGS      ?=

CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11)
PY    := $(VENV)/bin/python
READY := $(VENV)/.fedcore-ready
# As in an activated environment, the environment's programs come first.
IN_ENV := PATH="$(if $(filter /%,$(VENV)),$(VENV),$(CURDIR)/$(VENV))/bin:$$PATH"

ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 \
  VECLIB_MAXIMUM_THREADS=1 NUMEXPR_NUM_THREADS=1

# Tests differ a thousandfold in length: a process that is done takes over what waits for another.
SHARED := -n $(CORES) --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# A bar for each rule in the place of thousands of lines; errors stay. LOGGER= shows Snakemake's own.
LOGGER ?= --logger rich
SNAKEMAKE = $(IN_ENV) snakemake $(LOGGER) $(if $(PROFILE),--workflow-profile $(PROFILE))
# make reproduce PAPERS="factorization fedpower"
PAPERS ?=
# A folder of workflow/profiles, such as workflow/profiles/slurm.
PROFILE ?=
# What Snakemake itself would not say: which papers there are, where profiles lie, and how to get a
# plugin, whose name it calls an invalid choice.
define CHECKED
$(if $(PAPERS),@$(IN_ENV) python -m fedcore job papers $(PAPERS))
$(if $(PROFILE),@test -f "$(PROFILE)/profile.yaml" || { \
  echo "there is no $(PROFILE)/profile.yaml: name its folder (PROFILE=workflow/profiles/slurm)" >&2; exit 1; }
@for name in $$(sed -n 's/^executor: *\([a-z-]*\).*/\1/p' "$(PROFILE)/profile.yaml"); do \
  $(IN_ENV) python -c "import snakemake_executor_plugin_$$(echo $$name | tr - _)" 2>/dev/null || { \
    echo "$(PROFILE) needs Snakemake's plugin $$name: $(PY) -m pip install snakemake-executor-plugin-$$name" >&2; \
    exit 1; }; done)
endef

.PHONY: help docs env deep mpi cluster quickstart reproduce test test-oldest test-kernels test-readme test-cluster lint bench bench-kept arena report verdicts gallery restore architecture lock clean distclean

help: ## list the targets and variables
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  CORES=$(CORES)  PYTHON=a Python 3.11 or later  SNAKEMAKE_ARGS='--dry-run'  PYTEST_ARGS='-k faps'"

quickstart: $(READY) ## each method, table and figure at small size, on stand-in data, without a network
	$(CHECKED)
	$(SNAKEMAKE) --configfile config/quick.yaml --cores $(CORES) $(PAPERS) $(SNAKEMAKE_ARGS)
	@echo
	@echo "Results of the quick run are in results/quick/:"
	@ls -1 results/quick 2>/dev/null | sed 's/^/  /'
	@echo "Open results/quick/report/index.html in a browser; 'make reproduce' is the papers' size."

reproduce: $(READY) ## every experiment of the five papers at the papers' size; PAPERS="faps fedpower" some
	$(CHECKED)
	$(SNAKEMAKE) --cores $(CORES) $(PAPERS) $(SNAKEMAKE_ARGS)

test: $(READY) ## all tests, on CORES processes with one BLAS thread each; the numerical ones twice
	$(IN_ENV) $(ONE_THREAD) pytest $(SHARED) $(PYTEST_ARGS)
	$(IN_ENV) $(ONE_THREAD) python tests/kernels.py other $(SHARED) $(PYTEST_ARGS)

test-oldest: ## the tests with the oldest versions that pyproject.toml allows, by uv in .venv-oldest; PYTHON=3.11
	@$(UV) --version >/dev/null 2>&1 || { echo "make test-oldest needs uv (pipx install uv)" >&2; exit 1; }
	$(UV) venv --quiet --seed --clear --python "$(or $(PYTHON),3.11)" .venv-oldest
	$(UV) pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct -r pyproject.toml $(OLDEST:%=--extra %)
	$(UV) pip install --quiet --python .venv-oldest/bin/python --no-deps --no-build-isolation --editable .
	PATH="$(CURDIR)/.venv-oldest/bin:$$PATH" $(ONE_THREAD) pytest $(SHARED) $(PYTEST_ARGS)

test-kernels: $(READY) ## the numerical tests under every OpenBLAS kernel of this machine
	$(IN_ENV) $(ONE_THREAD) python tests/kernels.py all $(SHARED) $(PYTEST_ARGS)

test-readme: $(READY) ## every command of README and the tutorial, in a fresh clone of HEAD; ten minutes or more
	$(IN_ENV) python tests/fresh_readme.py

test-cluster: cluster ## on a SLURM of one node, which it sets up (Debian, as root): kill, resume, compare
	$(IN_ENV) python tests/cluster/onenode.py --accounting
	$(IN_ENV) $(ONE_THREAD) FEDCORE_TEST_CLUSTER=1 pytest tests/workflow/test_slurm.py $(PYTEST_ARGS)

lint: $(READY) ## style, types, import layers and Snakemake's linter; changes nothing
	$(IN_ENV) ruff check .
	$(IN_ENV) ruff format --check .
	$(IN_ENV) mypy
	$(IN_ENV) lint-imports
	$(IN_ENV) snakefmt --check Snakefile workflow
	$(IN_ENV) snakemake --lint

bench: $(READY) ## speed against reference implementations and the machine's limits
	@set -e; for script in benchmarks/bench_*.py; do \
	  [ -e "$$script" ] || { echo "no benchmarks/bench_*.py"; exit 1; }; \
	  echo "== $$script"; $(IN_ENV) python "$$script"; \
	done

bench-kept: $(READY) ## the same, and what they print is kept for benchmarks/README.md
	$(IN_ENV) python benchmarks/keep.py

arena: $(READY) ## every method on the same data, half an hour on two cores, and docs/arena.md
	$(CHECKED)
	$(SNAKEMAKE) --config papers='[arena]' --cores $(CORES) $(SNAKEMAKE_ARGS)
	$(IN_ENV) python tools/arena_page.py

report: $(READY) ## results/report/index.html: all verdicts, tables and figures as pages to look at
	$(SNAKEMAKE) --cores $(CORES) $(SNAKEMAKE_ARGS) -- results/report/index.html

estimate: $(READY) ## docs/error_estimate.md, error estimates against exact arithmetic, some minutes
	$(IN_ENV) $(ONE_THREAD) python tools/error_estimate.py

verdicts: $(READY) ## docs/verdicts/ and README's table from the results of `make reproduce`
	$(IN_ENV) python tools/verdicts.py

gallery: $(READY) ## docs/gallery/ for clones, small pictures of the last run's figures
	$(IN_ENV) python tools/kept_figures.py

docs: $(READY) ## this documentation as pages in build/docs, without a network; warnings are errors
	@rm -rf build/docs # pages of modules that are gone
	$(IN_ENV) $(ONE_THREAD) python -m sphinx -W --keep-going -q -c docs/site docs build/docs
	@echo "Open build/docs/index.html in a browser."

restore: $(READY) ## put kept histories of long runs into results/, not to run them again
	$(IN_ENV) python tools/kept_histories.py restore --cores $(CORES)

architecture: $(READY) ## docs/architecture.md and README's table of algorithms, from the code
	$(IN_ENV) python tools/architecture.py
	$(IN_ENV) python tools/algorithm_table.py

deep: $(READY) ## add PyTorch to the environment, for networks (paper fedrep)
	@set -e; \
	if $(UV) --version >/dev/null 2>&1; then $(UV) pip install --python "$(PY)" "$(TORCH)"; \
	else "$(PY)" -m pip install --quiet --disable-pip-version-check "$(TORCH)"; fi

# Dependencies are those of requirements.lock, which are there.
define locked
@if $(UV) --version >/dev/null 2>&1; then $(UV) pip install --python "$(PY)" --no-deps --require-hashes -r requirements-$(1).lock; \
	else "$(PY)" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-$(1).lock; fi
endef

mpi: $(READY) ## add mpi4py and an MPI to the environment, for clients at several ranks
	$(call locked,mpi)

cluster: $(READY) ## add Snakemake's plugin for SLURM to the environment
	$(call locked,slurm)

env: $(READY) ## the environment alone
	@echo "$(VENV): $$($(PY) --version), fedcore and everything in requirements.lock"

# Each candidate is run, because a command may exist and still not work (a version manager's shim).
# A Python newer than the lock's wheels comes last, because it has to compile packages.
$(PY):
	@set -e; \
	if [ -e "$(VENV)" ] && [ ! -e "$(VENV)/pyvenv.cfg" ]; then \
	  echo "$(VENV) exists and is not a Python environment: choose another folder with VENV=..." >&2; exit 1; \
	fi; \
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
	fi

$(READY): $(PY) pyproject.toml requirements.lock
	@set -e; \
	if [ -L "$(VENV)" ]; then \
	  echo "$(VENV) is a link: this would change an environment that others use." >&2; \
	  echo "Remove the link, or name an environment of this checkout's own: make VENV=.venv-own" >&2; \
	  exit 1; \
	fi; \
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

define lock_of_extra
@printf '%s\n' $(2) | $(UV) pip compile - --no-deps --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --quiet $(LOCK_ARGS) --output-file requirements-$(1).lock
@{ echo "# What fedcore-repro[$(1)] adds to requirements.lock. Written by \`make lock\`; not to be edited."; \
	   cat requirements-$(1).lock; } > requirements.lock.tmp && mv requirements.lock.tmp requirements-$(1).lock
endef

lock: ## regenerate requirements.lock and those of extras; LOCK_ARGS=--upgrade takes the newest versions
	@$(UV) --version >/dev/null 2>&1 || { echo "make lock needs uv (pipx install uv)" >&2; exit 1; }
	$(UV) pip compile pyproject.toml --extra workflow --extra dev --extra docs --universal --python-version 3.11 \
	  --fork-strategy fewest --generate-hashes --no-header --quiet $(LOCK_ARGS) --output-file requirements.lock
	@{ echo "# fedcore-repro[workflow,dev,docs] for Python 3.11 and later. Written by \`make lock\`; not to be edited."; \
	   cat requirements.lock; } > requirements.lock.tmp && mv requirements.lock.tmp requirements.lock
	$(call lock_of_extra,mpi,$(MPI))
	$(call lock_of_extra,slurm,$(SLURM))

clean: ## remove caches and results/quick; data and other results stay
	rm -rf build dist examples/plugin/build examples/plugin/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis results/quick data/clients/quick
	@find data results -name '.*.tmp*' -type f -delete 2>/dev/null || true
	@find benchmarks examples fedcore notebooks tests workflow \
	  \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## clean, and remove the environment
	@if [ -e "$(VENV)/pyvenv.cfg" ]; then rm -rf "$(VENV)"; fi
