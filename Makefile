# Everything here needs git, make and Python 3.11 or newer; `make help` lists the targets.
PYTHON ?= python3
VENV   := .venv
CHECKS := .venv-checks
IMAGE  ?= localhost/precedent$(if $(filter 1,$(SERVER)),-server):dev
BIN    := $(VENV)/bin
MARKS  := not container and not browser and not postgres and not slow and not night

SHELL       := /bin/sh
.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench image lock docs address picture clean

export PIP_DISABLE_PIP_VERSION_CHECK = 1
unexport PYTHONDONTWRITEBYTECODE

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/ready ## Show the bot at work: a repository on this machine, two events, the comment
	@$(BIN)/python -m tools.demo

test: $(VENV)/ready ## Run the tests that need only Python and git, in a few minutes
	@$(BIN)/python -m pytest -n auto --dist worksteal -m "$(MARKS)"

test-all: $(VENV)/ready ## Run every test; those of containers, browser and PostgreSQL fail without the program
	@$(BIN)/python -m pytest

lint: $(VENV)/ready $(CHECKS)/ready ## Check style, types, workflows, Dockerfile and shell scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.settings_docs --check
	$(CHECKS)/bin/zizmor --offline --persona pedantic --quiet .github action.yml
	$(BIN)/python -m tools.snippets build/snippets
	$(CHECKS)/bin/zizmor --offline --persona pedantic --quiet --config build/snippets/zizmor.yml build/snippets
	$(CHECKS)/bin/python -m tools.actionlint .github/workflows/*.yml
	$(CHECKS)/bin/python -m tools.actionlint build/snippets/.github/workflows/*.yml
	$(CHECKS)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(CHECKS)/bin/check-jsonschema --builtin-schema vendor.github-workflows build/snippets/.github/workflows/*.yml
	$(CHECKS)/bin/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(CHECKS)/bin/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yml
	$(CHECKS)/bin/python -m tools.helm lint --strict deploy/chart --values tests/deploy/values.yml
	$(CHECKS)/bin/hadolint Dockerfile
	$(CHECKS)/bin/shellcheck .ci/run
	$(CHECKS)/bin/shellcheck build/snippets/scripts/*.sh

bench: $(VENV)/ready ## Measure speed, size and quality next to other tools; ONLY=search,event repeats some
	@$(BIN)/python -m bench.run $(if $(ONLY),--only "$(ONLY)")

image: ## Build the image with Docker or buildah; SERVER=1 for the server, ORG=1 adds to that; MODEL=0: no text model
	@set -- $(if $(filter 0,$(MODEL)),--build-arg MODEL=0) \
	  $(foreach part,SERVER ORG,$(if $(filter 1,$($(part))),--build-arg $(part)=1)) -t $(IMAGE) .; \
	if docker info >/dev/null 2>&1; then docker build "$$@"; \
	elif command -v buildah >/dev/null 2>&1; then buildah bud --isolation chroot --network host --layers "$$@"; \
	else echo "make image needs Docker or buildah: install one of them" >&2; exit 2; fi

lock: $(CHECKS)/ready ## Pin all dependencies with hashes; UPGRADE=1 takes newer versions
	$(CHECKS)/bin/python -m tools.lock $(if $(UPGRADE),--upgrade)

docs: $(VENV)/ready ## Write config.example.yml, docs/settings.md and tables of other pages from the code
	@$(BIN)/python -m tools.settings_docs

address: $(VENV)/ready ## Fill in this repository's address: REPOSITORY=OWNER/precedent
	@$(BIN)/python -m tools.address "$(REPOSITORY)"

picture: $(VENV)/ready ## Take the pictures of the README; needs Chromium and fonts
	@$(BIN)/python -m tools.picture

clean: ## Remove everything that the other targets made
	rm -rf $(VENV) $(CHECKS) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define environment
	@test ! -L $(@D) || { echo "$(@D) is a link, and making it would empty the folder that it leads to: run make there, or remove the link" >&2; exit 2; }
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "make needs Python 3.11 or newer: no $(PYTHON) in PATH; try: make PYTHON=/path/to/python3" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make needs Python 3.11 or newer: $(PYTHON) is $$($(PYTHON) -V 2>&1); try: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make needs Python's venv module: install it (on Debian: python3-venv), or try: make PYTHON=/path/to/python3" >&2; exit 2; }
	@echo "Preparing $(@D) (once)" >&2
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -q --no-deps --require-hashes -r $(1)
endef

$(VENV)/ready: requirements-dev.lock pyproject.toml
	$(call environment,requirements-dev.lock)
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(CHECKS)/ready: requirements-checks.lock
	$(call environment,requirements-checks.lock)
	@touch $@
