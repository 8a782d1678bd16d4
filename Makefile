# Two commands are all a newcomer needs: `make run` and `make test`. Both set everything up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# Compiled modules are kept, whatever the environment says: tests start many processes, which would each compile Horae again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run test check bench chaos soak conformance format clean help

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Horae needs Python 3.11 or later; say which with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev,bench]'
	touch $(READY)

run: $(READY) ## the service on http://127.0.0.1:8420, with a few living schedules
	$(BIN)/python -m examples.living

test: $(READY) ## run all tests
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

check: $(READY) ## lint, format, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(READY) ## measure beside peers, as ratios; writes the pages on speed in docs/explanation
	$(BIN)/python -m bench --write docs/explanation/speed.md
	$(BIN)/python -m bench.herd --write docs/explanation/herd.md
	$(BIN)/python -m bench.service --write docs/explanation/service-speed.md
	$(BIN)/python -m bench.flows --write docs/explanation/flows-speed.md
	$(BIN)/python -m bench.workflows --write docs/explanation/workflows-speed.md
	$(BIN)/python -m bench.console --write docs/explanation/console-speed.md
	$(BIN)/python -m bench.temporal --write docs/explanation/temporal-speed.md

chaos: $(READY) ## two minutes in which nodes and databases are disturbed, and every slot is counted (HORAE_CHAOS_SECONDS, HORAE_CHAOS_SEED)
	$(BIN)/python -m tests.chaos --seconds $${HORAE_CHAOS_SECONDS:-120} --seed $${HORAE_CHAOS_SEED:-1}

soak: $(READY) ## many examples and seeds (HORAE_EXAMPLES=N, HORAE_SEEDS=N; 10,000), and half an hour of chaos (HORAE_CHAOS_SECONDS=N)
	HORAE_EXAMPLES=$${HORAE_EXAMPLES:-10000} HORAE_SEEDS=$${HORAE_SEEDS:-10000} $(BIN)/python -m pytest --numprocesses auto \
		$$(grep -rlE --include='test_*.py' '^@given|HORAE_SEEDS' tests)
	HORAE_CHAOS_SECONDS=$${HORAE_CHAOS_SECONDS:-1800} $(MAKE) chaos

conformance: $(READY) ## contract line → the tests that prove it
	$(BIN)/python tools/conformance.py

format: $(READY) ## let ruff write the code its way
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what make built
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
