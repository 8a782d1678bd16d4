# Two commands are all a newcomer needs: `make run` and `make test`. Both set everything up.

# The first Python that is new enough; another one with: make PYTHON=python3.13
ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
ifndef PYTHON
PYTHON := $(shell for each in python3 python3.13 python3.12 python3.11; do "$$each" $(ENOUGH) 2>/dev/null && echo "$$each" && break; done)
endif
BIN := .venv/bin
SET_UP = @"$(PYTHON)" $(ENOUGH) 2>/dev/null || { echo 'Horae needs Python 3.11 or later$(if $(PYTHON),; $(PYTHON) is not) (make PYTHON=python3.12 names one).' >&2; exit 2; }; "$(PYTHON)" tools/set_up.py

# Compiled modules are kept, whatever the environment says: tests start many processes, which would each compile Horae again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run test check bench chaos soak conformance format clean help

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

run: ## the service on http://127.0.0.1:8420 (PORT=8421 for another port), with a few living schedules
	$(SET_UP) run
	@$(if $(PORT),HORAE_PORT='$(PORT)' )$(BIN)/python -m examples.living

test: ## run all tests
	$(SET_UP) test
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

check: ## lint, format, types, import directions
	$(SET_UP) test
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -c 'from importlinter.cli import lint_imports_command as lint; lint()' --no-cache

bench: ## measure beside peers, as ratios; writes the pages on speed in docs/explanation
	$(SET_UP) bench
	$(BIN)/python -m bench --write docs/explanation/speed.md
	$(BIN)/python -m bench.herd --write docs/explanation/herd.md
	$(BIN)/python -m bench.service --write docs/explanation/service-speed.md
	$(BIN)/python -m bench.flows --write docs/explanation/flows-speed.md
	$(BIN)/python -m bench.workflows --write docs/explanation/workflows-speed.md
	$(BIN)/python -m bench.console --write docs/explanation/console-speed.md
	$(BIN)/python -m bench.temporal --write docs/explanation/temporal-speed.md

chaos: ## two minutes in which nodes and databases are disturbed, and every slot is counted (HORAE_CHAOS_SECONDS, HORAE_CHAOS_SEED)
	$(SET_UP) test
	$(BIN)/python -m tests.chaos --seconds $${HORAE_CHAOS_SECONDS:-120} --seed $${HORAE_CHAOS_SEED:-1}

soak: ## many examples and seeds (HORAE_EXAMPLES=N, HORAE_SEEDS=N; 10,000), and half an hour of chaos (HORAE_CHAOS_SECONDS=N)
	$(SET_UP) test
	HORAE_EXAMPLES=$${HORAE_EXAMPLES:-10000} HORAE_SEEDS=$${HORAE_SEEDS:-10000} $(BIN)/python -m pytest --numprocesses auto \
		$$(grep -rlE --include='test_*.py' '^@given|HORAE_SEEDS' tests)
	HORAE_CHAOS_SECONDS=$${HORAE_CHAOS_SECONDS:-1800} $(MAKE) chaos

conformance: ## contract line → the tests that prove it
	$(SET_UP) test
	$(BIN)/python tools/conformance.py

format: ## let ruff write the code its way
	$(SET_UP) test
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

clean: ## remove what make built
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
