# One runner for everything. Targets are verbs; each prints the command it runs.
VENV ?= .venv
export VENV
# Without it each of the processes that tests and figures start would compile a thousand modules again.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = $(VENV)/bin/python -m pytest --import-mode=importlib
SEED ?= 1
MINUTES ?= 2
PODS ?= 2000
REQUESTS ?= 20000
OBJECTS ?= 50000
# Where `make run` keeps its cluster: every verb finds ./sampan-data by itself (it was run/data once).
DATA ?= $(if $(wildcard run/data),run/data,sampan-data)
N ?= 128
ONLY ?=
# Of `make bench`: the kubeconfig of another cluster to run the same on.
AGAINST ?=
OURS ?=
IMAGE ?=
URL ?=

# A file's tests stay together, and with them what they share; tests/conftest.py has the longest begin.
by_file = --dist loadfile --no-loadscope-reorder
# Tests of real containers, networks and processes wait more than they compute: four at once keep two
# cores busy.
apart = -n 4 $(by_file)
# On a machine that others load too: what failed beside the others is tried once more by itself, and
# both are in the report. What fails twice has failed.
twice = $(PYTEST) -q $(1) $(apart) || $(PYTEST) -q $(1) --last-failed --last-failed-no-failures none

.DEFAULT_GOAL := help
.PHONY: help run test check fix flow e2e pages robust campaign campaign-nodes soak year load attack fuzz-api bench bench-controllers bench-api bench-crd bench-store bench-nodes bench-growth bench-network bench-testkit bench-page suites proto docs release setup-run setup-test clean

help: ## what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup-run:
	@tools/setup run
setup-test:
	@tools/setup test

run: setup-run ## set up, then a one-node cluster in the foreground (Ctrl-C stops it)
	$(VENV)/bin/sampan up --data-dir $(DATA) --kubeconfig run/kubeconfig

test: setup-test ## set up, then every test, with real containerd, kubectl, etcd and a registry
	$(VENV)/bin/ruff format --check src tests tools setup.py
	$(VENV)/bin/ruff check src tests tools setup.py
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m vulture
	$(PYTEST) -q tests/unit tests/stateful tests/flow tests/test_architecture.py tests/test_docs.py tests/test_packaging.py -n 2 $(by_file)
	$(call twice,tests/robustness tests/attack tests/client_recording tests/contract tests/e2e tests/pages)

check: setup-test ## the quick one: format, lint, types, unit and contract tests (under a minute)
	$(VENV)/bin/ruff format --check src tests tools setup.py
	$(VENV)/bin/ruff check src tests tools setup.py
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m vulture
	$(PYTEST) -q tests/unit tests/contract tests/test_architecture.py tests/test_docs.py tests/test_packaging.py -n 2 -m "not slow and not containerd"

fix: setup-test ## format and repair what can be repaired
	$(VENV)/bin/ruff format src tests tools setup.py
	$(VENV)/bin/ruff check --fix src tests tools setup.py

flow: setup-test ## in-process clusters, virtual time
	$(PYTEST) -q tests/flow tests/stateful -n 2

e2e: setup-test ## kubectl as judge, on crun and conmon and in part on containerd (RUNTIME=native or cri: all on one)
	$(if $(RUNTIME),SAMPAN_TEST_RUNTIME=$(RUNTIME)) $(PYTEST) -q tests/e2e $(apart)

pages: setup-test ## every command of README.md, docs/testkit.md and docs/guide, pasted
	$(PYTEST) -q tests/pages -n 2

robust: setup-test ## seeded faults; SEED=, MINUTES= and PODS= bound it
	SAMPAN_SEED=$(SEED) SAMPAN_MINUTES=$(MINUTES) SAMPAN_PODS=$(PODS) $(PYTEST) -q tests/robustness

campaign: setup-test ## overlapping faults drawn by seed, histories checked: SEED=, MINUTES= (or ROUNDS=), STORE=sqlite|etcd, RUNTIME=simulated|native|cri
	PYTHONPATH=src $(VENV)/bin/python -m tests.robustness.fault_campaign --seed $(SEED) $(if $(ROUNDS),--rounds $(ROUNDS),--minutes $(MINUTES)) --store $(or $(STORE),sqlite) --runtime $(or $(RUNTIME),simulated)

campaign-nodes: setup-test ## 1000 simulated nodes vanish in hundreds and processes are killed while 10000 pods are on their way
	PYTHONPATH=src $(VENV)/bin/python -m tests.robustness.campaign

soak: setup-test ## mixed load on one process with real containers for MINUTES=; a fit says what grows; RUNTIME=native|cri
	PYTHONPATH=src $(VENV)/bin/python -m tests.robustness.soak --seed $(SEED) --minutes $(MINUTES) --runtime $(or $(RUNTIME),native) --csv build/soak.csv --svg build/soak.svg

year: setup-test ## twelve months of a cluster on virtual time: CronJobs, tokens, requests, rollouts, nodes that fail
	PYTHONPATH=src $(VENV)/bin/python -m tests.robustness.year

load: setup-test ## 10 000 watches, 5 000 who do not read, 1 000 who send a byte a minute: memory, and what another client has of it
	PYTHONPATH=src $(VENV)/bin/python -m tests.robustness.held_load

attack: setup-test ## what attackers try, long: REQUESTS= mutated requests, OBJECTS= drawn objects, SEED=; `make test` has the short form
	SAMPAN_SEED=$(SEED) SAMPAN_REQUESTS=$(REQUESTS) SAMPAN_OBJECTS=$(OBJECTS) $(PYTEST) -q -s tests/attack tests/flow/test_attacks.py

fuzz-api: setup-test ## odd requests to the API server; REQUESTS= and SEED= choose how many and which
	SAMPAN_SEED=$(SEED) SAMPAN_REQUESTS=$(REQUESTS) $(PYTEST) -q -s tests/robustness/test_api_fuzz.py tests/robustness/test_openapi_fuzz.py

bench: setup-test ## figures against a floor measured in the same run; AGAINST=KUBECONFIG: beside another cluster (OURS=, IMAGE=)
	PYTHONPATH=src $(VENV)/bin/python -m $(if $(AGAINST),tests.bench.against $(AGAINST) $(if $(OURS),--ours $(OURS)) $(if $(IMAGE),--image $(IMAGE)),tests.bench.run)

bench-api: setup-test ## the API server over TLS, beside a bare HTTP server and the bare store
	$(VENV)/bin/python -m tests.bench.api

bench-crd: setup-test ## custom resources beside config maps of the same size: rates, memory, first object
	PYTHONPATH=src $(VENV)/bin/python -m tests.bench.custom_resources

bench-scheduler: setup-test ## pods per second, decisions alone and end to end; appends to docs/bench.csv
	$(VENV)/bin/python -m tests.bench.scheduler

bench-store: setup-test ## a million updates of a thousand objects in SQLite: rate and size of the file
	$(VENV)/bin/python -m tests.bench.store

bench-controllers: setup-test ## Deployments, Jobs, namespaces and garbage on simulated nodes; appends to docs/bench.csv
	$(VENV)/bin/python -m tests.bench.controllers

bench-nodes: setup-test ## 1000 simulated nodes and 50000 pods in one process: rate, memory, idle CPU
	PYTHONPATH=src $(VENV)/bin/python -m tests.bench.nodes

bench-growth: setup-test ## how processor time and memory grow with N, for some thirty workloads; N= and ONLY= choose, LINES=1 counts lines that run
	PYTHONPATH=src $(VENV)/bin/python -m tests.bench.growth --n $(N) --only "$(ONLY)" $(if $(LINES),--lines,$(if $(ONLY),,--write))

bench-network: setup-test ## rules, names, and what a Service costs a connection, in a network namespace; appends to docs/bench.csv
	$(VENV)/bin/python -m tests.bench.network

bench-testkit: setup-test ## clusters for tests: ready, memory, virtual time, forks, what is left; appends to docs/bench.csv
	PYTHONPATH=src $(VENV)/bin/python -m tests.bench.testkit

bench-page: setup-test ## the page in a real browser: frames per second while 200 of 5000 pods come and go each second
	PYTHONPATH=src $(VENV)/bin/python -m tests.bench.page

suites: setup-test ## the test suites of kopf and kr8s, from their source packages, against a cluster of the test kit; KUEUE=DIR: those of Kueue's sources there (GO= builds them, SUITES= chooses, ORIGINAL=DIR compares); CHARTS=DIR: helm charts of others (HELM=, ORIGINAL_KUBECONFIG=FILE compares)
	PYTHONPATH=src $(VENV)/bin/python tools/suites
	PYTHONPATH=src $(VENV)/bin/python tools/envtest-suites --kueue "$(KUEUE)" --go "$(GO)" --only "$(SUITES)" --original "$(ORIGINAL)"
	PYTHONPATH=src:. $(VENV)/bin/python tools/chart-suite --charts "$(CHARTS)" --helm "$(HELM)" --only "$(SUITES)" --original "$(ORIGINAL_KUBECONFIG)"

proto: setup-test ## generate the message classes of the container runtime's and etcd's wire formats
	tools/generate-protos

docs: setup-test ## the documentation as a site: build/site/index.html, and in the archive that `sampan docs` serves; URL=: of the repository
	rm -rf build/site
	SAMPAN_URL=$(URL) $(VENV)/bin/python setup.py -q site
	$(VENV)/bin/sampan docs --to build/site

release: setup-test ## source archive and wheel in dist/, each tried in a bare virtual environment; says what a person still does; URL=: of the repository, for links, pictures, Homebrew
	SAMPAN_URL=$(URL) $(VENV)/bin/python tools/release

clean: ## forget the virtual environment and build products (not run/)
	rm -rf $(VENV) build dist src/*.egg-info src/sampan/api/schema/definitions*.json.z src/sampan/data/docs.zip
