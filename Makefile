# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help install quickstart client test test-slow lint check format

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

install: $(INSTALLED)  ## make .venv with the pinned packages

# Debian's python3 has venv without ensurepip; there, the system's pip fills the folder.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv --without-pip .venv
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null 2>&1 || true
	if $(BIN)/python -m pip --version >/dev/null 2>&1; then pip="$(BIN)/python -m pip"; \
	else pip="$(PYTHON) -m pip --python $(BIN)/python"; fi; \
	$$pip install --quiet --constraint constraints.txt --editable '.[gnubg,export,dev]'
	touch $@

quickstart: $(INSTALLED)  ## train a net in minutes and see how it plays
	$(BIN)/bgrl loop level=quickstart

client:  ## the TypeScript client's packages, and the client and its page compiled (needs Node)
	cd bgrl/export/client && npm ci --no-audit --no-fund && npm run build

test: $(INSTALLED)  ## what CI runs: style, types, import order and the default tests
	$(BIN)/python -m pytest

test-slow: $(INSTALLED)  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

lint: $(INSTALLED)  ## style, types and the import order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: test  ## the same as test

format: $(INSTALLED)  ## put the code into the standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
