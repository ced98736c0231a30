# Everything happens in .venv; the two commands below set it up as far as they need it.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Where `make install` puts the command, and which extras it gets: make install EXTRAS=flare,torch
PREFIX ?= $(HOME)/.local
EXTRAS ?=

.PHONY: demo install wheel test lint docs bench clean

demo: .venv/core
	$(BIN)/cosilo demo

# A venv of its own that needs the source no more, and the command where shells look for commands.
install:
	$(PYTHON) -m venv '$(PREFIX)/share/cosilo'
	'$(PREFIX)/share/cosilo/bin/python' -m pip install --quiet --disable-pip-version-check -c constraints.txt '.$(if $(EXTRAS),[$(EXTRAS)])'
	mkdir -p '$(PREFIX)/bin'
	ln -sf '$(PREFIX)/share/cosilo/bin/cosilo' '$(PREFIX)/bin/cosilo'
	@'$(PREFIX)/bin/cosilo' --version
	@echo "installed: $(PREFIX)/bin/cosilo"

wheel: .venv/core
	$(PIP) build
	$(BIN)/python -m build --wheel --outdir dist .

# Tests of FLARE share one running federation, those of Ray one cluster: each group stays in one process, beside the
# others. These wait for processes more than they compute, so three are a fit for two cores.
test: .venv/all lint
	$(BIN)/python -m pytest -n 3 --dist loadgroup

lint: .venv/all
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cosilo needs Python 3.11 or newer")'
	@echo "installing the core into .venv, two or three minutes"
	test -d .venv || $(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

# torch first and by itself: what depends on it then takes the version that is there.
.venv/all: .venv/core
	@echo "installing all extras into .venv, a few minutes"
	$(PIP) torch
	$(PIP) -e '.[torch,data,flare,ray,privacy,export,tracking,docs,dev]'
	touch $@

# The site, from docs/ and the docstrings, in docs/_build/html; a warning is an error.
docs: .venv/all
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "the site: docs/_build/html/index.html"

bench: .venv/all
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
