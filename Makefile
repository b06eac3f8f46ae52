# Everything runs from .venv, which infra/setup.sh keeps in step with requirements.lock.
.DEFAULT_GOAL := help
.PHONY: help setup pyspark benchmark reproduce docs test test-all test-night extended-unit extended-integration lint unit fuzz serve
EXPERIMENT ?= wordcount
ID ?= all
PORT ?= 8080
INPUTS ?= 1000000
BIN := .venv/bin
FAST := not extended and not slow
# Each process begins with a half of the files and takes over tests of the other in the end, so that what a file makes
# for its tests is made once. One process more than there are cores, since many tests wait for other processes.
IN_ORDER := -n $$(($$(nproc) + 1)) --dist worksteal
# In the order of tests/conftest.py: the longest files first.
BY_FILE := -n 2 --dist loadfile --no-loadscope-reorder

# Great Expectations and Airflow report usage to their makers unless told not to.
export GX_ANALYTICS_ENABLED := false
export AIRFLOW__USAGE_DATA_COLLECTION__ENABLED := false

# Where the environment forbids to keep compiled modules (images often do), every process of the tests would compile
# the project and rewrite the assertions of all tests anew.
export PYTHONDONTWRITEBYTECODE :=

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1 - /p' Makefile

setup:  ## Python packages, a JVM and jars, wherever they are missing
	@sh infra/setup.sh

pyspark: setup  ## pin another PySpark (VERSION=4.2.0), with its Kafka connector and the Kafka that this needs
	@$(BIN)/python -m infra.services.new_pyspark "$(VERSION)"

benchmark: setup  ## run an experiment (EXPERIMENT=file.yaml or a name in experiments/examples/)
	@$(BIN)/aftershock benchmark $(EXPERIMENT)

reproduce: setup  ## rebuild the papers' tables and figures that can be computed (ID=utilization/fig-04; default all)
	@$(BIN)/aftershock reproduce $(ID)

serve: setup  ## open Airflow with the DAGs and the pages (PORT=8080)
	@$(BIN)/aftershock serve --port $(PORT)

docs: setup  ## generate the reference pages that are made of the code
	@$(BIN)/python -m aftershock.reference

test: lint unit  ## linters, types, unit tests, and one of each kind of integration and end-to-end test
	@sh infra/setup.sh chromium docker sshd nftables
	@$(BIN)/pytest $(BY_FILE) -m "$(FAST)" tests/e2e tests/integration

test-all: test extended-unit extended-integration  ## what `make test` leaves out, too: every driver, the first part of each campaign

extended-unit: setup
	@$(BIN)/pytest $(IN_ORDER) -m "extended and not slow" tests/unit

extended-integration: setup
	@sh infra/setup.sh chromium docker sshd nftables
	@$(BIN)/pytest $(BY_FILE) -m "extended and not slow" tests/e2e tests/integration

test-night: test-all  ## all parts of the campaigns, and all examples of property tests
	@$(BIN)/pytest $(IN_ORDER) --hypothesis-profile thorough -m "hypothesis or slow" tests/unit
	@$(BIN)/pytest $(BY_FILE) -m slow tests/e2e tests/integration

lint: setup  ## style, types and import rules
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

unit: setup  ## unit tests only
	@$(BIN)/pytest $(IN_ORDER) -m "$(FAST)" tests/unit

fuzz: setup  ## feed fuzzers for a night (INPUTS=1000000)
	@$(BIN)/python -m tests.fuzz --inputs $(INPUTS)
