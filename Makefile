PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One thread per process: the tests run several processes, and OpenMP threads that wait for each
# other are many times slower.
export OMP_NUM_THREADS = 1

.PHONY: demo test quality

demo: $(VENV)/installed
	$(BIN)/soubench demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -n 2

quality: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p soubench

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
