# The two commands of firn are `make run` and `make test`; `make help` lists the rest.
.DEFAULT_GOAL := all
.PHONY: all run run-cluster compare check test lint sim model chaos bench soak install uninstall deb node image dist clean help format

all: ## build everything, optimised, into build/ (programs in build/bin/)
	@scripts/build $(PREFIX)

run: all ## build, and serve with no configuration; state in ./var
	@build/bin/firnd --state-dir "$${FIRN_STATE_DIR:-var}" $(ARGS)

run-cluster: all ## three firnds that are one service, and a load balancer; Ctrl-C stops all
	@scripts/run-cluster $(ARGS)

compare: all ## ask a Snowflake and a ticket server in turn; starts firnd if none runs
	@scripts/compare

check: ## what to run between edits: format, one build, the quick tests; a minute with a warm build
	@scripts/check

test: ## install what is missing, then build and test everything
	@scripts/test

sim: ## run SEEDS simulated worlds (20000; of a cluster 100000) and the mutation gate; sim/README.md
	@mkdir -p build-sim && cmake --preset release -B build-sim >build-sim/configure.log
	@cmake --build build-sim -j "$$(nproc)" --target sim_world sim_mutants >build-sim/build.log 2>&1 || \
		{ cat build-sim/build.log; exit 1; }
	@build-sim/sim/sim_world --regress sim/regress.txt --seeds $(or $(SEEDS),20000) --jobs "$$(nproc)"
	@build-sim/sim/sim_world --quorum --seeds $(or $(SEEDS),20000) --jobs "$$(nproc)"
	@build-sim/sim/sim_world --sweep --seeds $(or $(SWEEPS),200) --jobs "$$(nproc)"
	@build-sim/sim/sim_world --cluster --regress sim/regress.txt --seeds $(or $(SEEDS),100000) --jobs "$$(nproc)"
	@build-sim/sim/sim_world --member --regress sim/regress.txt --seeds $(or $(SEEDS),20000) --jobs "$$(nproc)"
	@build-sim/sim/sim_mutants --gate

model: ## check the protocol's models with spin in their large bounds; half an hour and more
	@models/run --large

chaos: all ## three firnd on each store under kills, partitions, wrong clocks; CHAOS_SECONDS each (300)
	@for s in raft quorum quorum-restart quorum-sqlite etcd zookeeper postgres redis sqlite; do \
		tests/chaos/run build/bin --store $$s --seconds $${CHAOS_SECONDS:-300} || exit 1; done
	@tests/chaos/leaders build/bin --changes $${CHAOS_LEADERS:-200}
	@tests/chaos/scale build/bin

bench: all ## measure firn beside its peers; writes bench/results/
	@bench/run
	@bench/servers
	@bench/cluster
	@bench/proxy

soak: all ## 20,000 requests/s on three firnds behind HAProxy, a fault a minute; MINUTES (10), bench/results/soak.md
	@scripts/install-deps bench
	@bench/soak --minutes $(or $(MINUTES),10)

install: all ## install below PREFIX (default /usr/local), staged below DESTDIR if that is set
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

uninstall: ## remove what the last make install has installed; with the same DESTDIR
	@while read -r file || [ -n "$$file" ]; do rm -f "$(DESTDIR)$$file"; done <$(BUILD)/install_manifest.txt

deb: all ## Debian packages of the build, into build/deb
	@scripts/install-deps package
	@scripts/deb

node: ## the npm package, libfirn as WebAssembly, into build/node (docs/bindings.md)
	@bindings/node/build build/node

image: all ## container image "firn" of the build, with buildah and no network (docs/containers.md)
	@scripts/image build $(or $(TAG),firn)

dist: ## source tarball of HEAD, into dist/ (scripts/release checks and tries it, too)
	@scripts/dist

clean: ## remove everything that was built
	@rm -rf build build-*

format: ## lay out the C files as .clang-format says
	@git ls-files '*.c' '*.h' | xargs clang-format -i

lint: ## clang-tidy and cppcheck over src/, as errors
	@scripts/lint

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' Makefile

PREFIX ?= /usr/local
BUILD ?= build
