# Two commands for a newcomer: `make demo` and `make test`. Both build .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: demo test test-matrix mutate lint types contracts docs bench clean

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("hidag needs Python 3.11 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,test,dev,oracles]'
	touch $@

.venv/.demo: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("hidag needs Python 3.11 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	touch $@

demo: .venv/.demo
	$(BIN)/hidag demo --out demo

test: .venv/.installed
	$(BIN)/python -m pytest -n $(WORKERS)

lint: .venv/.installed
	$(BIN)/ruff check src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/python tools/check_words.py

types: .venv/.installed
	$(BIN)/mypy

contracts: .venv/.installed
	$(BIN)/lint-imports

# Offline; notebooks run once and are kept in docs/site/_build. Warnings are errors.
docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs/site docs/site/_build/html

# Pythons that are not installed are skipped; needs the network.
test-matrix: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nox
	$(BIN)/nox

# Planted bugs that no test of a package notices: make mutate PACKAGE=inference. Takes hours.
PACKAGE ?= inference
mutate: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'cosmic-ray>=8.3'
	printf '[cosmic-ray]\nmodule-path = "src/hidag/$(PACKAGE)"\ntimeout = 300.0\nexcluded-modules = []\ntest-command = "$(BIN)/python -m pytest -x -q -n 0 tests/$(PACKAGE)"\n[cosmic-ray.distributor]\nname = "local"\n' > .mutate.toml
	$(BIN)/cosmic-ray init .mutate.toml .mutate.sqlite
	$(BIN)/cosmic-ray exec .mutate.toml .mutate.sqlite
	$(BIN)/cr-report --surviving-only .mutate.sqlite

# Takes about ten minutes; prints ratios measured in one run.
bench: .venv/.installed
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/graph_search.py

clean:
	rm -rf .venv demo demo-assessment
