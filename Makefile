# The verbs of this project; `make` alone lists them.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
LOCK_VENV := dev-out/lock-venv
UV := uv==0.13.8
# What `make test` runs of tox.ini; `make test-all` runs all of it.
SHORT := -e lint,types,py311

# Debian keeps some programs (mkfs.ext4, nginx) out of a user's PATH.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin
# What a checkout is tested with comes from its lock files, not from the machine's settings.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PIP_REQUIRE_VIRTUALENV PIP_USER PIP_TARGET
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export VIRTUALENV_NO_PERIODIC_UPDATE := 1

# $(call environment,LOCK FILES): an environment of exactly what is locked, and of this tree.
# Whatever was in the folder goes; the target, a file in it, says that it is complete.
define environment
	@echo "Making the environment $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(VENV)/bin/python -m pip install -q --require-hashes --no-deps $(addprefix -r requirements/,$(1))
	@$(VENV)/bin/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@
endef

.PHONY: help
help: ## list the verbs
	@if [ -t 1 ] && [ -z "$$NO_COLOR" ]; then verb=$$(printf '\033[36m') plain=$$(printf '\033[0m'); fi; \
	sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' Makefile | while read -r name text; do \
	    printf '  make %s%-12s%s %s\n' "$$verb" "$$name" "$$plain" "$$text"; done

.PHONY: run
run: ## a signed release, and a device to set up, talk to and look at (ARGS=--once: do not stay)
	@$(PYTHON) dev/packages.py run
	@$(MAKE) -sq $(VENV)/made || $(MAKE) -s $(VENV)/made-to-run
	@$(VENV)/bin/python dev/run.py $(ARGS)

.PHONY: wizard
wizard: ## the first-boot wizard alone, on port 8088; it sets up dev-out/ (ARGS=--help: its options)
	@$(PYTHON) dev/packages.py wizard
	@$(MAKE) -sq $(VENV)/made || $(MAKE) -s $(VENV)/made-to-run
	@$(VENV)/bin/wizard-app serve --dev-out dev-out $(ARGS)

.PHONY: test
test: ## the checks for every change: lint, types, tests (ARGS='-e types': one of them)
	@$(PYTHON) dev/packages.py test
	@$(MAKE) -s $(VENV)/made
	@$(VENV)/bin/python -m tox run $(if $(filter -e,$(ARGS)),,$(SHORT)) $(ARGS)

.PHONY: test-all
test-all: ## every check there is: those, the long forms of the tests, the wheel
	@$(PYTHON) dev/packages.py test
	@$(MAKE) -s $(VENV)/made
	@$(VENV)/bin/python -m tox run $(ARGS)

.PHONY: test-fresh
test-fresh: ## `make run` and `make test` in a bare Debian 12, as root (ARGS=--help: its options)
	@$(PYTHON) dev/packages.py test-fresh
	@$(PYTHON) -m dev.fresh $(ARGS)

# Not a verb for people: CI has the cases, and this project does not.
.PHONY: cross-check
cross-check: $(VENV)/made
	@$(VENV)/bin/python -m dev.cross_check $(CASES)

# Not a verb for people: whoever changes the pages renews the pictures of them.
.PHONY: screenshots
screenshots: $(VENV)/made
	@$(PYTHON) dev/packages.py screenshots
	@$(VENV)/bin/python -m dev.docs.screenshots

.PHONY: bench
bench: $(VENV)/made ## measure the programs against the alternatives (ARGS=--help: its options)
	@$(PYTHON) dev/packages.py bench
	@$(VENV)/bin/python -m bench.run $(ARGS)

.PHONY: docs
docs: $(VENV)/made ## build the site of the documents in build/docs; a broken link fails
	@$(VENV)/bin/python -m dev.docs.architecture
	@$(VENV)/bin/python -m sphinx -qanWT --keep-going -c docs . build/docs
	@ln -sf README.html build/docs/index.html
	@echo build/docs/index.html

.PHONY: release
release: $(VENV)/made ## make a signed release of this project in dist/ (ARGS=--help: its options)
	@$(VENV)/bin/python -m dev.release $(ARGS)

.PHONY: deb
deb: ## build the Debian package in dist/ (ARGS=--help: its options)
	@$(PYTHON) dev/packages.py deb
	@$(PYTHON) -m dev.debian_package.deb $(ARGS)

.PHONY: lint
lint: $(VENV)/made ## check the style and the types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

.PHONY: format
format: $(VENV)/made ## put the code into the common format
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

.PHONY: lock
lock: $(LOCK_VENV)/made ## pin every dependency anew, with hashes (ARGS=--upgrade: newest versions)
	@$(call compile,dev,setup.cfg --all-extras)
	@$(call compile,run,setup.cfg --extra release --extra control --extra web --extra push --extra wizard -c requirements/dev.txt)
	@$(call compile,lint,setup.cfg --extra lint -c requirements/dev.txt)
	@$(call compile,package,setup.cfg --extra package -c requirements/dev.txt)
	@$(call compile,object-store-server,requirements/object-store-server.in)
	@$(call compile,key-test-servers,requirements/key-test-servers.in)
	@$(call compile_node,browser-tools)
	@$(call compile_node,lighthouse)

# $(call compile,LOCK FILE,OF WHAT)
compile = $(LOCK_VENV)/bin/uv pip compile $(2) $(ARGS) --quiet \
	--universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" \
	--output-file requirements/$(1).txt

# $(call compile_node,FOLDER): the first pass leaves out what packages ask of one another.
npm_lock = npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error
compile_node = cd requirements/$(1) && \
	if [ "$(ARGS)" = --upgrade ]; then rm -f package-lock.json; fi && \
	$(npm_lock) && $(npm_lock) && npm ci --dry-run --ignore-scripts --loglevel=error >/dev/null

.PHONY: messages
messages: $(VENV)/made ## bring the catalogues of the pages' languages up to date
	@$(VENV)/bin/python -m dev.messages

.PHONY: clean
clean: ## remove what was made, but keep the keys in dev-out/keys
	@rm -rf $(VENV) .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@rm -rf build dist *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -d dev-out ]; then find dev-out -mindepth 1 -maxdepth 1 ! -name keys -exec rm -rf {} +; fi

$(VENV)/made: requirements/dev.txt setup.cfg pyproject.toml
	$(call environment,dev.txt)

# What is enough for `make run`, for whoever has no full environment.
$(VENV)/made-to-run: requirements/run.txt requirements/package.txt setup.cfg pyproject.toml
	$(call environment,run.txt package.txt)

$(LOCK_VENV)/made: Makefile
	@$(PYTHON) -m venv --clear $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip install -q $(UV)
	@touch $@
