# `make help` lists the targets. On a fresh machine `make demo` and `make test` are the whole set-up.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# Certificates that the machine trusts, a company proxy's too.
export UV_SYSTEM_CERTS := 1
# Every process of the service would compile its packages again at each start: three times the time.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/pytest
# Test files run beside each other, each runner with a PostgreSQL and a broker of its own: many of them mostly wait.
JOBS ?= 3
BROWSER ?= tests/browser

.PHONY: bench help setup demo up test test-browser test-unit lint types contracts check lock measure measure-anthropic chaos soak audit test-api-fuzz clean

help:  ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: $(READY)  ## Make .venv with the pinned packages (done by itself where needed)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Touchstone needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || { echo "Making .venv with $$($(PYTHON) --version)"; $(PYTHON) -m venv .venv; }
	@test -x $(BIN)/uv || { echo "Getting uv, the package installer"; $(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -oE '^uv==[^ ]+' requirements.lock)"; }
	@echo "Installing $$(grep -c '==' requirements.lock) pinned packages (the first time about 700 MB on disk)"
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

demo: $(READY)  ## Ingest the sample handbook, evaluate every mode, print the tables
	@$(BIN)/touchstone demo

up: $(READY)  ## Run the service on this machine until Ctrl-C
	@$(BIN)/touchstone up

test: $(READY)  ## All tests but the long fault suite (what CI runs)
	@command -v chromium >/dev/null && echo "Browser tests are not among these: make test-browser." || echo "Browser tests are not run: there is no chromium here."
	@$(PYTEST) tests -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-browser: $(READY)  ## The console walked through with chromium (skipped where there is none)
	@$(PYTEST) $(BROWSER) -m browser -n 2 --dist loadfile --no-loadscope-reorder

chaos: $(READY)  ## The long fault suite: what takes minutes to show
	@$(PYTEST) tests -m chaos -s

soak: $(READY)  ## 20,000 questions under fire, and 50,000 with small runs beside them (an hour or more)
	@$(PYTEST) tests/soak -m soak -s

test-unit: $(READY)  ## Only the tests that need no service
	@$(PYTEST) tests/unit

lint: $(READY)  ## ruff: rules and format
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(READY)  ## mypy, strict
	@$(BIN)/mypy

contracts: $(READY)  ## import-linter: data flows one way
	@$(BIN)/lint-imports --no-cache 2>&1 | sed -n '/^Contracts$$/,$$p'; exit $${PIPESTATUS[0]}

check: lint types contracts  ## Everything that reads code without running it

lock: $(READY)  ## Pin again after a change in pyproject.toml
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --extra server --group dev --generate-hashes --no-header --no-annotate --quiet --output-file requirements.lock

bench: $(READY)  ## Speed and scale, each beside its floor, into docs/measured.md (needs the reference data; an hour or more)
	@$(BIN)/python -m bench $(BENCH)

measure: $(READY)  ## SciFact through the real service (needs the reference data; takes about 30 minutes)
	@$(BIN)/python -m bench.scifact

measure-anthropic: $(READY)  ## The contextual-retrieval code set (needs the reference data; takes a few minutes)
	@$(BIN)/python -m bench.anthropic

audit: $(READY)  ## Known vulnerabilities of the pinned packages, where the service that knows can be reached
	@.ci/audit.sh

test-api-fuzz: $(READY)  ## schemathesis against a live server: at least 5,000 cases (some minutes)
	@TOUCHSTONE_FUZZ_EXAMPLES=60 $(PYTEST) tests/fuzz -m fuzz -s

clean:  ## Remove caches and the embedded services' data of this folder
	@rm -rf .touchstone .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
