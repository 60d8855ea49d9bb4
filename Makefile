# Everything runs inside .venv, which the first target that needs it creates.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export MPLBACKEND := Agg

.PHONY: demo test check bench docs clean

demo: $(VENV)/.cli
	$(BIN)/python examples/demo.py --out demo-output

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -q

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/peers.py

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

# One stamp file for each extra, so that nothing is installed twice.
$(VENV)/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@

clean:
	rm -rf $(VENV) demo-output site
