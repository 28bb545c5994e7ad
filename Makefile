# Everything people do often. `make demo` and `make test` need Python 3.11+, make and Java 17, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BROWSER_READY := $(VENV)/.browser
# What builds and deploys: a virtual environment of its own, see requirements/sam.in.
TOOLS := .venv-sam
TOOLS_READY := $(TOOLS)/.ready
ENV ?= dev

# Without it each process of a test would compile all that it imports: 2 s of CPU with Spark.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup browser check unit demo test test-nightly test-times suspended simulate simulate-planted release-check release-notes dist fuzz mutations lint format requirements clean faults build-tools build deploy cost \
	docs docs-serve reference axe promtool helm actionlint cdk \
	bench bench-quick bench-latency bench-failover bench-checkpoints bench-metadata bench-slot bench-verify bench-growth bench-new-topics bench-old-records bench-identical bench-first-record bench-function bench-engines bench-link-cuts plots bench-round-trips switchovers active-active web-load

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(READY)  ## prepare .venv, check Java
	@$(BIN)/python -m mirrorless.local.java

$(READY): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python %s is too old: install Python 3.11 or newer, or name one: make PYTHON=python3.13" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $(READY)

browser: $(BROWSER_READY)  ## install the browser of the page's tests

$(BROWSER_READY): $(READY) requirements/browser.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --requirement requirements/browser.txt
	@touch $(BROWSER_READY)

check: $(READY)  ## format, lint, types, unit tests, documents: two minutes, without Java
	@$(MAKE) --jobs 2 --output-sync=target --no-print-directory lint unit

unit: $(READY)  ## unit tests and documents, without Java
	MIRRORLESS_UNIT_CPU_S=1 $(BIN)/python -m pytest --quiet --numprocesses 2 --dist loadfile tests/unit tests/docs

demo: setup  ## two clusters, three million records, replicated and compared record by record
	@$(BIN)/mirrorless demo

# What the last `make test` took, by file.
TIMES := build/test-times.json
SIDE_BY_SIDE := --numprocesses $(or $(WORKERS),3) --dist loadfile --no-loadscope-reorder
test: setup build-tools $(BROWSER_READY)  ## unit, real Kafka brokers, real Spark, the build; WORKERS=n side by side
	@rm -f $(TIMES)
	$(BIN)/python -m pytest -m alone --times=$(TIMES) tests/spark
	$(BIN)/python -m pytest -m 'not alone and not nightly' $(SIDE_BY_SIDE) --times=$(TIMES) tests
	@$(BIN)/python -m tests.times $(TIMES)

test-times: $(READY)  ## seconds of each folder and file in the last `make test`; KEEP=1 orders later runs by them
	@$(BIN)/python -m tests.times $(TIMES) $(if $(KEEP),--keep)

test-nightly: setup build-tools $(BROWSER_READY)  ## the tests that `make test` leaves out, as they take long
	MIRRORLESS_CHANGED_SINCE=HEAD $(BIN)/python -m pytest -m nightly $(SIDE_BY_SIDE)
	MIRRORLESS_FUZZ_EXAMPLES=500 $(BIN)/python -m pytest --hypothesis-profile many --numprocesses 2 --dist loadfile tests/unit

fuzz: setup  ## parsers of settings against arbitrary input, about an hour of CPU
	MIRRORLESS_FUZZ_EXAMPLES=$(or $(EXAMPLES),50000) $(BIN)/python -m pytest -m fuzz --timeout 0 tests/unit/settings/test_fuzz.py

suspended: setup  ## every operation, suspended before each of its writes while another process continues or aborts it (CASE='failback' for some; hours)
	$(BIN)/python -m tests.suspended $(if $(CASE),--case "$(CASE)")

mutations: $(READY)  ## plant bugs in copy, operations, settings and metadata: a unit test has to notice each of them (10 minutes)
	@$(BIN)/python -m tests.mutations

SIMULATE := PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation
simulate: $(READY)  ## the copier in a simulated world, or OF=operations; SCHEDULES=10000 of them from SEED=0 on, or one SEED with its trace
	@$(SIMULATE) --of $(or $(OF),copy) $(if $(SEED),--seed $(SEED)) --schedules $(or $(SCHEDULES),$(if $(SEED),1,1000))

simulate-planted: $(READY)  ## search each planted fault with SCHEDULES=20000, and store the seed that finds it (an hour)
	PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation.planting --schedules $(or $(SCHEDULES),20000)

faults: setup  ## a copy under load while brokers, drivers, executors and connections are killed (20 minutes)
	$(BIN)/python -m tests.faults

bench: setup  ## throughput, CPU, memory and bytes beside MirrorMaker 2, nine workloads, three rounds (an hour)
	$(BIN)/python -m bench.throughput --json docs/bench/throughput.json

bench-latency: setup  ## end-to-end latency beside MirrorMaker 2 at 1,000, 10,000 and 50,000 records a second (20 minutes)
	$(BIN)/python -m bench.latency --json docs/bench/latency.json

bench-wan: setup  ## throughput, latency and CPU across links of 0 to 150 ms, beside MirrorMaker 2 (90 minutes)
	$(BIN)/python -m bench.wan --json docs/bench/wan.json

bench-growth: setup  ## throughput by slots, partitions and topics, and passes over the metadata by topics (20 minutes)
	$(BIN)/python -m bench.growth --json docs/bench/growth.json

plots: setup  ## docs/bench/*.json as PNG, SVG and tables
	$(BIN)/python -m bench.plots
	$(BIN)/python -m bench.tables

bench-quick: setup  ## the ratios of one workload against tuned MirrorMaker 2
	$(BIN)/python -m bench.throughput --quick

bench-failover: setup  ## what a group reads twice that fails over and back, beside MirrorMaker 2 (5 minutes)
	$(BIN)/python -m bench.failover

bench-checkpoints: setup  ## 500 groups by 200 partitions from a cold start
	$(BIN)/python -m bench.checkpoints

bench-new-topics: setup  ## how soon a new topic is copied, beside MirrorMaker 2 (6 minutes)
	$(BIN)/python -m bench.new_topics

bench-old-records: setup  ## what a backfill of records costs that are older than the target's producer expiry
	$(BIN)/python -m bench.old_records

bench-identical: setup  ## what identical offsets cost: filling, a million holes, small transactions (3 minutes)
	$(BIN)/python -m bench.identical

bench-first-record: setup  ## how soon a run copies, and its memory, beside MirrorMaker 2
	$(BIN)/python -m bench.first_record

bench-round-trips: setup  ## round trips of a start and of each command, with a cluster 150 ms away (30 minutes)
	$(BIN)/python -m bench.round_trips --json docs/bench/round_trips.json

bench-function: setup  ## the copy function with a function's CPU, and with every tenth invocation killed (cgroup v1, as root)
	$(BIN)/python -m bench.function_copy
	$(BIN)/python -m bench.function_ticks

bench-engines: setup  ## a backlog for which auto starts Spark, and stops it again
	$(BIN)/python -m bench.engine_switch

bench-link-cuts: setup  ## a link cut for 1, 10 and 120 s, and connections reset: when copying resumes (20 minutes, as root)
	$(BIN)/python -m bench.link_cuts --namespaces --json docs/bench/link_cuts.json

switchovers: setup  ## 100 switchovers with two fences and both namings, half of them killed: lost, repeated, blocked (25 minutes)
	$(BIN)/python -m bench.switchovers --json docs/bench/switchovers.json

active-active: setup  ## one topic written on two and on three clusters, flows killed all the time: lost, repeated (15 minutes)
	$(BIN)/python -m bench.active_active --json docs/bench/active_active.json
	$(BIN)/python -m bench.active_active --clusters 3 --seconds 120 --rate 500
	$(BIN)/python -m bench.active_active --compact --seconds 120

bench-metadata: setup  ## 2,000 topics with 10,000 partitions
	$(BIN)/python -m bench.metadata_scale

PROMTOOL := $(or $(MIRRORLESS_CACHE),$(HOME)/.cache/mirrorless)/promtool
promtool: $(PROMTOOL)  ## unpack promtool from Debian's package (needs apt-get) into the cache, for the tests of the alerts

$(PROMTOOL):
	@rm -rf $@.deb && mkdir -p $@.deb
	cd $@.deb && { apt-get --quiet download prometheus || { apt-get --quiet update && apt-get --quiet download prometheus; }; }
	dpkg-deb --fsys-tarfile $@.deb/prometheus_*.deb | tar --extract --directory $@.deb ./usr/bin/promtool
	mv $@.deb/usr/bin/promtool $@
	rm -r $@.deb

HELM := $(or $(MIRRORLESS_CACHE),$(HOME)/.cache/mirrorless)/helm
helm: $(HELM)  ## build helm (needs Go) into the cache, once, for the tests of the chart

$(HELM):
	GOBIN=$(@D) CGO_ENABLED=0 go install helm.sh/helm/v3/cmd/helm@v3.18.4

ACTIONLINT := $(or $(MIRRORLESS_CACHE),$(HOME)/.cache/mirrorless)/actionlint
actionlint: $(ACTIONLINT)  ## build actionlint (needs Go) into the cache, and check the workflows with it
	$(ACTIONLINT) -color

$(ACTIONLINT):
	GOBIN=$(@D) CGO_ENABLED=0 go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

axe: $(READY)  ## fetch axe-core (needs npm) for the tests of the page's accessibility, once
	$(BIN)/python -m tests.support.axe

web-load: setup  ## what 50 open pages cost a running copy: throughput, CPU, latency (6 minutes)
	$(BIN)/python -m bench.web_load --json docs/bench/web_load.json

bench-verify: setup  ## how fast `mirrorless verify` compares, MB/s a core
	$(BIN)/python -m bench.verify --megabytes 1000 --rounds 2

bench-slot: setup  ## what one slot costs: one-record batches, dense batches, two thousand partitions
	$(BIN)/python -m bench.slot

build-tools: $(TOOLS_READY)  ## prepare .venv-sam with sam and cfn-lint

$(TOOLS_READY): requirements/sam.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --requirement requirements/sam.txt
	@touch $(TOOLS_READY)

CDK := .venv-cdk
cdk: $(CDK)/.ready  ## prepare .venv-cdk (needs Node.js), for the test of the page's example, which is skipped without it

$(CDK)/.ready:
	$(PYTHON) -m venv $(CDK)
	$(CDK)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile aws-cdk-lib==2.275.0
	@touch $@

build: build-tools  ## what is deployed, for Lambda's and Glue's platforms; no Docker
	PYTHON=$(CURDIR)/$(TOOLS)/bin/python SAM_CLI_TELEMETRY=0 $(TOOLS)/bin/sam build

deploy: build  ## build and deploy an environment of samconfig.toml: make deploy ENV=dev
	SAM_CLI_TELEMETRY=0 $(TOOLS)/bin/sam deploy --config-env $(ENV)

cost: setup  ## what flows of 1, 50 and 500 MB/s cost a month: the tables of docs/cost.md
	@$(BIN)/python -m bench.cost

docs: $(READY)  ## the documentation as a site in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

docs-serve: $(READY)  ## serve the documentation on port 8000 while it is edited
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

reference: $(READY)  ## write the tables of the reference pages (settings, commands, metrics, rights, errors) from the code
	$(BIN)/python -m tests.docs.reference

lint: $(READY)  ## ruff (lint and format) and mypy in strict mode
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The command line's own packages stay out of what is shipped to Lambda and Glue.
NOT_SHIPPED := $(addprefix --no-emit-package ,anyio h11 idna markdown-it-py mdurl prometheus-client pygments rich starlette uvicorn)

requirements: setup  ## pin the newest dependencies (needs uv on the path)
	uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --upgrade --no-header --generate-hashes --extra dev --output-file requirements/dev.txt
	uv pip compile pyproject.toml --quiet --universal --python-version 3.13 --upgrade --no-header --generate-hashes $(NOT_SHIPPED) --extra glue --output-file requirements/glue.txt
	uv pip compile pyproject.toml --quiet --universal --python-version 3.13 --upgrade --no-header --generate-hashes $(NOT_SHIPPED) --extra functions --output-file requirements/functions.txt
	uv pip compile requirements/browser.in --quiet --universal --python-version 3.11 --upgrade --no-header --generate-hashes --output-file requirements/browser.txt
	uv pip compile requirements/dist.in --quiet --universal --python-version 3.11 --upgrade --no-header --generate-hashes --output-file requirements/dist.txt
	uv pip compile requirements/sam.in --quiet --universal --python-version 3.11 --upgrade --no-header --generate-hashes --output-file requirements/sam.txt

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
release-check:  ## fail unless TAG is the version of pyproject.toml, and the changelog has a section for it
	@[ "$(TAG)" = "v$(VERSION)" ] || { echo "tag $(TAG) is not v$(VERSION), the version of pyproject.toml"; exit 1; }
	@grep --quiet '^## $(VERSION) - ' CHANGELOG.md || { echo "CHANGELOG.md has no section ## $(VERSION) - DATE"; exit 1; }

release-notes:  ## the changelog's section of TAG
	@awk -v version='$(TAG:v%=%)' '/^## /{found = $$2 == version; next} found' CHANGELOG.md

dist:  ## the wheel, the source distribution and their checksums, in dist/
	rm -rf dist .venv-dist
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --requirement requirements/dist.txt
	.venv-dist/bin/python -m build --outdir dist
	cd dist && sha256sum mirrorless-* > SHA256SUMS

clean:  ## remove what was built
	rm -rf $(VENV) $(TOOLS) .aws-sam .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
