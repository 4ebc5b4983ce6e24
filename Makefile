# What a checkout can do. It needs Python 3.11 or newer, git and make; everything else comes from the package index.

PYTHON ?= python3
JOBS ?= 2
# Processes that share the cores lose far more to each other's threads than small products gain by them.
export OPENBLAS_NUM_THREADS ?= 1
VENV := .venv
BIN := $(VENV)/bin
CREATED := $(VENV)/.created
SITE := .venv-site
RUNTIME := $(VENV)/.runtime-installed
DEVELOPMENT := $(VENV)/.development-installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo install develop test test-whole check format torch certify outside sass-index corpus fuzz microtests functions mutants mutants-of-rungs mutants-of-tuned programs explained rungs witnesses sass-score sass-control main-loops blackwell bench docs site site-look wheels reading stacks samples clean

help: ## List what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: install ## Build a Blackwell GEMM, run it in the emulator, compare with NumPy
	$(BIN)/ptxgen run blackwell/swizzled --m 512 --n 512 --k 512 --dtype bf16

install: $(RUNTIME) ## Install ptxgen into .venv

develop: $(DEVELOPMENT) ## Install ptxgen and the tools of its development into .venv

test: check ## Lint, check types and run all tests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-whole: check ## The same, with every case of the tests of which `make test` takes one in several (an hour)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --whole

check: $(DEVELOPMENT) ## Lint and check types only
	$(BIN)/ruff check
	$(BIN)/pyright

format: $(DEVELOPMENT) ## Rewrite the sources in the project's format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

torch: $(DEVELOPMENT) ## Install PyTorch into .venv (CPU is enough: TORCH=torch==2.13.0+cpu), and run the tests that use it
	$(BIN)/python -m pip install --quiet $(or $(TORCH),torch)
	$(BIN)/python -m pytest tests/test_torch.py tests/device/test_arrays.py tests/cli/launch/test_plain.py tests/test_wheel.py

certify: $(DEVELOPMENT) ## Compare every instruction form with ptxas, both ways, and record it (an hour; resumes)
	$(BIN)/python -m tools.certify --jobs $(JOBS) --record

outside: $(DEVELOPMENT) ## Compare with ptxas on forms from other people's lists and on public .ptx files, in CLONES= (an hour; `make outside` lists the clones)
	$(BIN)/python -m tools.outside $(or $(CLONES),list)
	$(if $(CLONES),$(BIN)/python -m tools.outside.files $(CLONES))
	$(if $(CLONES),$(BIN)/python -m tools.outside.run_known $(CLONES))

sass-index: $(DEVELOPMENT) ## Record which SASS ptxas makes of the declared forms (minutes)
	$(BIN)/python -m tools.certify.emitted --jobs $(JOBS) --record

corpus: $(DEVELOPMENT) ## Compile CUDA's own headers to PTX with nvcc, and read and check all of it (minutes)
	$(BIN)/python -m tools.corpus --jobs $(JOBS)

fuzz: $(DEVELOPMENT) ## Read and check a million random texts, and record it (two hours; python -m tools.fuzz --sample N takes fewer)
	$(BIN)/python -m tools.fuzz --jobs $(JOBS) --record

microtests: $(DEVELOPMENT) ## Run every microtest in the emulator and through ptxas (minutes)
	$(BIN)/python -m microtests
	$(BIN)/python -m microtests --device ptxas --jobs $(JOBS)

functions: $(DEVELOPMENT) ## Compute the approximate functions for all inputs, and compare with an H200's hashes (three hours of a core)
	$(BIN)/python -m tools.interpolator --jobs $(JOBS)

blackwell: $(DEVELOPMENT) ## Run all microtests and open questions on a B200, B300 or RTX 50 card, into one file to send in (minutes)
	$(BIN)/python -m microtests --device gpu --kit blackwell

mutants: $(DEVELOPMENT) ## Mutate correct kernels, see whether the emulator reports each mutant, and record it (two hours; python -m tools.mutants --sample N takes fewer)
	$(BIN)/python -m tools.mutants --jobs $(JOBS) --record

explained: $(DEVELOPMENT) ## Explain every legal spelling of every declared instruction (half an hour)
	$(BIN)/python -m tools.explained --jobs $(JOBS)

mutants-of-rungs: $(DEVELOPMENT) ## The same for every rung of the ladders (an hour)
	$(BIN)/python -m tools.mutants --page mutants-of-rungs --jobs $(JOBS) --record

mutants-of-tuned: $(DEVELOPMENT) ## The same for the kernels of the dispatcher's tuning table (two hours)
	$(BIN)/python -m tools.mutants --page mutants-of-tuned --jobs $(JOBS) --record

programs: $(DEVELOPMENT) ## Run random legal programs in the emulator, which must not crash (minutes)
	$(BIN)/python -m tools.programs --jobs $(JOBS)

rungs: $(DEVELOPMENT) ## Run every kernel of the ladders at all shapes, types and schedules, and record it (two hours; resumes)
	$(BIN)/python -m tools.rungs --jobs $(JOBS) --resume --record

witnesses: $(DEVELOPMENT) ## Run all recorded kernels of compilers under all schedules (minutes)
	$(BIN)/python -m tools.recorded --schedule all --jobs $(JOBS)

sass-score: $(DEVELOPMENT) ## Change thousands of instructions and see that `ptxgen sass diff` reports each, and record it (an hour)
	$(BIN)/python -m tools.sass_score --jobs $(JOBS) $(if $(CCCL),--cccl $(CCCL)/ci/sass/compare_sass.py --cuobjdump $(CUOBJDUMP)) --record

sass-control: $(DEVELOPMENT) ## Decode and encode the control fields of thousands of cubins, and record it (minutes)
	$(BIN)/python -m tools.sass_score.control --jobs $(JOBS) --record

main-loops: $(DEVELOPMENT) ## Count the SASS of main loops, next to CUTLASS= and DEEPGEMM= by NVCC=, and record it (minutes)
	$(BIN)/python -m tools.main_loops $(if $(CUTLASS),--cutlass $(CUTLASS)) $(if $(DEEPGEMM),--deepgemm $(DEEPGEMM)) $(if $(NVCC),--nvcc $(NVCC)) --record

bench: $(DEVELOPMENT) ## Measure parsing, checking, rendering and emulating
	$(BIN)/python -m bench.speed
	$(BIN)/python -m bench.functions
	$(BIN)/python -m bench.sass

hopper: $(DEVELOPMENT) ## Measure the Hopper kernels beside torch and cublasLt on an H200, and write docs/hopper.md (needs torch; 10 minutes; resumes)
	$(BIN)/python -m bench.hopper measure --out hopper.jsonl
	$(BIN)/python -m bench.hopper report hopper.jsonl

tune: $(DEVELOPMENT) ## Time candidates for every row on an H200, and write the dispatcher's table (needs torch; 10 minutes; resumes)
	$(BIN)/python -m bench.hopper measure --out tune.jsonl --candidates 8 --finalists 3 --algorithms 4
	$(BIN)/python -m bench.hopper tune tune.jsonl
	$(BIN)/python -m bench.hopper check

reading: $(DEVELOPMENT) ## Measure parsing and checking of megabytes from nvcc, beside pyptx
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m bench.reading --record

stacks: $(DEVELOPMENT) ## Run programs of CUDA C++, Triton, Numba, CuPy and others under ptxgen exec, and write docs/stacks.md (minutes)
	$(BIN)/python -m pip install --quiet --group stacks
	$(BIN)/python -m tools.stacks --write

samples: $(DEVELOPMENT) ## Run NVIDIA/cuda-samples under ptxgen exec, and write docs/stacks.md: make samples CUDA_SAMPLES=checkout (an hour)
	$(BIN)/python -m pip install --quiet --group stacks
	$(BIN)/python -m tools.samples $(CUDA_SAMPLES) --write

docs: $(DEVELOPMENT) ## Regenerate the generated parts of docs/: coverage, facts, checks, concepts, pictures
	sed -n 's/^`ptxgen \(layout .*\)`$$/\1/p' docs/layouts.md | xargs -L 1 $(BIN)/ptxgen
	$(BIN)/ptxgen explain facts --markdown > docs/facts.md
	$(BIN)/ptxgen explain checks --markdown > docs/checks.md
	$(BIN)/ptxgen explain concepts --markdown > docs/concepts.md
	$(BIN)/python -m tools.check_table
	$(BIN)/python -m tools.rung_table
	$(BIN)/python -m tools.plan_table
	$(BIN)/python -m tools.bug_page
	$(BIN)/python -m tools.terminal_page
	$(BIN)/ptxgen coverage --markdown > docs/coverage.md

site: $(SITE)/.installed ## Build the documentation as a site, offline, in build/site/html (minutes; an environment of its own)
	$(SITE)/bin/python -m tools.site

site-look: site ## Look at the site in headless Chromium, at two widths, light and dark (needs chromium)
	$(SITE)/bin/python -m pip install --quiet playwright
	$(SITE)/bin/python -m tools.site.browser

wheels: $(DEVELOPMENT) ## Build sdist and wheel, and use the wheel in fresh environments of PYTHONS= (minutes)
	$(BIN)/python -m tools.wheels $(PYTHONS)

clean: ## Delete .venv and everything generated
	rm -rf $(VENV) $(SITE) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Groups of dependencies need pip 25.1; the one that comes with Python may be older.
$(CREATED):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ptxgen needs Python 3.11 or newer, not " + sys.version.split()[0] + "; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	touch $@

$(RUNTIME): pyproject.toml | $(CREATED)
	$(BIN)/python -m pip install --quiet --editable '.[tools]'
	touch $@

$(DEVELOPMENT): pyproject.toml | $(CREATED)
	$(BIN)/python -m pip install --quiet --editable '.[gpu,lsp]' --group dev
	touch $@ $(RUNTIME)

$(SITE)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(SITE)/bin/python -m pip install --quiet --editable . --group site
	touch $@
