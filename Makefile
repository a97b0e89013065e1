PREFIX  ?= /usr/local
DESTDIR ?=
# Extra arguments of `make demo`, for example DEMO="--hosts 500 --speedup 10".
DEMO    ?=
# Independent programs whose results the tests compare with ours.
STRANGERS := ibsim-utils opensm infiniband-diags mstflint prometheus prometheus-alertmanager prometheus-node-exporter victoria-metrics tshark curl openssl
# For the QEMU guest of tests/kernel: the emulator, and the tools that build its module and file system.
GUEST := qemu-system-x86 binutils cpio gcc kmod libelf1 make util-linux xz-utils
# For tests/deploy: they run Helm, Ansible and the Kubernetes schema checks.
PYTHON := python3 python3-venv
# Browser that loads the pages in tests.
BROWSER := chromium chromium-driver
# A Slurm cluster on the loopback, for tests/deploy, and the database for its accounting, without that database's service.
SLURM := munge slurmctld slurmd slurm-client slurmdbd mariadb-server-core mariadb-client-core
# Build dependencies of the cargo feature `verbs`, on by default.
VERBS := libibverbs-dev librdmacm-dev libclang-dev pkg-config
# For `make packages`: rpmbuild, and the packages that are installed in the guest's Debian.
PACKERS := e2fsprogs ibverbs-providers init-system-helpers iproute2 kmod mawk rpm systemd udev
# Pinned: a newer release may reject an older tree.
CARGO_DENY := 0.20.2
CARGO_FUZZ := 0.13.2
# Run time of each fuzz target in seconds, and the targets (default: all).
SECONDS := 60
FUZZ    ?=
# Arguments of `make trust`, for example TRUST="--cables 300 --days 10".
TRUST   ?=
# The sites of `make week`.
WEEK    ?= 0..20
# `make pictures` records the demo for so long.
MINUTES := 20
CARGO_DEB := 3.8.0
CARGO_CYCLONEDX := 0.5.9
# For `make dist`: amd64 or arm64, and the cargo profile.
ARCH         ?= amd64
DIST_PROFILE ?= release
# For `make check-dist`: root file systems to run the program in, besides Debian 11, for example Alpine's minirootfs.
ROOTS        ?=
VERSION := $(shell sed -n '/^version = /{s/[^"]*"//;s/".*//p;q}' Cargo.toml)
# A stale Cargo.lock is updated on a developer machine and is an error in CI.
LOCKED  := $(if $(CI),--locked)
TARGET  := $(or $(CARGO_TARGET_DIR),target)
# opensm and infiniband-diags are in sbin, which is not on the PATH of Debian users.
export PATH := $(PATH):/usr/sbin:/sbin
# Label of fabric_exporter_build_info.
export FABRIC_EXPORTER_REVISION ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
.PHONY: help demo test lint policy packages advisories bench bench-quick trust week fuzz docs pictures build install dist check-dist manuals deb rpm deps cargo-deb cargo-cyclonedx clean
# Cargo runs jobs itself; parallel recipes would only wait for its lock and that of apt.
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "All targets that compile, except demo, need the Debian packages $(VERBS);"
	@echo "test, bench and deps install them."

# The demo uses no devices, so it is built without libibverbs, in a separate target directory that
# `make install` does not use.
demo: ## watch a simulated fabric in which a cable goes bad (no InfiniBand needed)
	cargo build $(LOCKED) --profile demo --no-default-features --target-dir $(TARGET)/demo
	@$(TARGET)/demo/demo/fabric-exporter demo $(DEMO)

# `packages` has its own target.
test: deps ## install what is missing and run every test
	scripts/run-tests $(LOCKED) --workspace

lint: ## formatting, directions of imports, clippy, documentation
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
		|| rustup component add rustfmt clippy
	cargo fmt --check
	rustfmt --check --edition 2024 fuzz/targets/*.rs
	cargo run $(LOCKED) --quiet -p source-check
	cargo clippy $(LOCKED) --workspace --all-targets --test packages -- -D warnings
	cargo clippy $(LOCKED) --no-default-features -- -D warnings
	@# As built with optimization: rustc then evaluates some constants in another order (E0391), unless it is incremental.
	CARGO_INCREMENTAL=0 cargo rustc $(LOCKED) --lib --no-default-features --profile check -- -C opt-level=3
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) --workspace --no-deps --quiet

policy: ## licenses, sources and versions of the dependencies (builds cargo-deny)
	@cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny@$(CARGO_DENY)
	cargo deny $(LOCKED) check bans licenses sources

packages: deps ## build and test the Debian package and the RPM (builds cargo-deb)
	@scripts/install-packages $(PACKERS)
	@CARGO_TARGET_DIR=$(TARGET) tests/kernel/prepare-debian
	@$(MAKE) --no-print-directory cargo-deb
	cargo test $(LOCKED) --test packages

# Not part of lint: the advisory database is fetched from the network, and its result changes from day to
# day without a change of the code.
advisories: policy ## known vulnerabilities in the dependencies (fetches the RustSec database)
	cargo deny $(LOCKED) check advisories

bench: deps ## measure against ibqueryerrors and node_exporter, on up to 162,000 simulated ports, under load, the findings on a site, the pages and the rules
	cargo bench $(LOCKED) --bench scale
	cargo bench $(LOCKED) --bench health
	cargo bench $(LOCKED) --bench fabric
	cargo bench $(LOCKED) --bench floor
	cargo bench $(LOCKED) --bench history
	@# The program as it is installed: cargo builds that of a bench with the features of the tests.
	@$(MAKE) --no-print-directory build
	PROGRAM_UNDER_TEST=$(abspath $(TARGET))/release/fabric-exporter cargo bench $(LOCKED) --profile dev --bench host
	cargo bench $(LOCKED) --bench load
	cargo bench $(LOCKED) --bench noise
	cargo bench $(LOCKED) --bench pages
	cargo bench $(LOCKED) --bench past
	@# It measures Prometheus, not our code.
	cargo bench $(LOCKED) --profile dev --bench rules
	cargo bench $(LOCKED) --bench shards

bench-quick: deps ## compare the costs with those of the last release, as ratios (3 minutes after the build)
	@$(MAKE) --no-print-directory build
	PROGRAM_UNDER_TEST=$(abspath $(TARGET))/release/fabric-exporter cargo bench $(LOCKED) --profile dev --bench host -- quick
	cargo bench $(LOCKED) --bench floor -- quick
	cargo bench $(LOCKED) --bench scale -- quick

# Not part of test: hours. It continues where it was interrupted.
trust: ## evaluate 3 million simulated cable-days, and write docs/trust.md (hours; TRUST="--cables 300 --days 10")
	cargo run $(LOCKED) --release -p ib-trials -- --report docs/trust.md \
		--results $(TARGET)/trust/results.jsonl --defects $(TARGET)/trust/defects --variants $(TARGET)/trust/settings \
		--command "make trust$(if $(TRUST), TRUST=\"$(TRUST)\")" $(TRUST)

# Not part of test: hours. `make test` runs a day of two sites, a day of 50 nodes, and two hours of planes.
week: deps ## simulated weeks: all alert rules on 200 hosts, totals of 1,000 nodes, a day of XDR planes (hours; WEEK=0..2: some of the 20 sites)
	WEEK_SITES=$(WEEK) cargo test $(LOCKED) --test alerting week_of -- --ignored --nocapture
	cargo test $(LOCKED) --profile bench --test fabric -- week_of_1000 day_of_sound_planes --ignored --nocapture

# Not part of test: the fuzzers need a sanitizer and coverage, so all dependencies are compiled again.
# `make test` replays the corpus.
fuzz: ## run each fuzz target for a minute (SECONDS=60, FUZZ="some targets"; SECONDS=keep adds new inputs to the corpus)
	@command -v g++ >/dev/null || scripts/install-packages g++
	@cargo fuzz --version 2>/dev/null | grep -qF "$(CARGO_FUZZ)" || cargo install --locked cargo-fuzz@$(CARGO_FUZZ)
	@CARGO_TARGET_DIR=$(TARGET) scripts/fuzz $(SECONDS) $(FUZZ)

# Each test that compares a generated file with its source writes the file instead.
docs: ## regenerate docs/metrics.md and other tables, examples, pictures, the OpenAPI description, alerts/compat, deploy/kubernetes
	UPDATE_DOCS=1 cargo test $(LOCKED) --lib --test web --test alerting --test fabric --test host --test deploy -- \
		openapi docs:: pages::pictures alert_table files_are_made dashboards::false_green faults_are_found series:: \
		the_example manifests_are_made

# Not part of test: it takes half an hour, and a person looks at the result. A recording is kept: remove
# target/pictures/recording to make another.
pictures: ## draw the dashboards with Grafana's own components, in target/pictures (half an hour; again: 5 minutes)
	@scripts/install-packages $(BROWSER) prometheus pngquant
	@command -v npm >/dev/null || scripts/install-packages nodejs npm # one from elsewhere will do
	cargo build $(LOCKED) --profile demo --no-default-features --target-dir $(TARGET)/demo
	scripts/pictures $(TARGET)/demo/demo/fabric-exporter $(TARGET) $(MINUTES)

build: ## release build
	cargo build $(LOCKED) --release

# Under sudo, cargo is often not on the PATH: then the binary of an earlier `make build` is installed.
install: ## build and install the binary (PREFIX=/usr/local, DESTDIR=)
	@if command -v cargo >/dev/null; then $(MAKE) --no-print-directory build; fi
	install -D -m 755 $(TARGET)/release/fabric-exporter $(DESTDIR)$(PREFIX)/bin/fabric-exporter

dist: cargo-cyclonedx ## static tarball, container image and SBOM, in target/artifacts (ARCH=amd64 or arm64)
	scripts/dist $(ARCH) $(DIST_PROFILE)

# Not part of `packages`: it builds twice.
check-dist: dist ## build again elsewhere and compare; run program and image in Debian 11, ROOTS="more.tar.gz" and Podman (root)
	scripts/check-reproducible $(ARCH) $(DIST_PROFILE)
	@scripts/install-packages binutils curl debootstrap podman python3
	@command -v runc >/dev/null || scripts/install-packages runc # one from elsewhere will do
	$(if $(filter-out 0,$(shell id -u)),sudo) scripts/check-dist $(TARGET)/artifacts/fabric-exporter-$(VERSION).linux-$(ARCH).tar.gz \
		$(TARGET)/artifacts/fabric-exporter-$(VERSION).linux-$(ARCH).oci.tar $(ROOTS)

manuals: build ## man pages and shell completions, in target/release/manuals
	scripts/manuals $(TARGET)/release/fabric-exporter $(TARGET)/release/manuals

deb: cargo-deb manuals ## a Debian package, below target/debian
	cargo deb $(LOCKED) --no-build

rpm: manuals ## an RPM, below target/rpm
	rpmbuild -bb --define "_topdir $(abspath $(TARGET))/rpm" --define "tree $(CURDIR)" \
		--define "binary $(abspath $(TARGET))/release/fabric-exporter" \
		--define "manuals $(abspath $(TARGET))/release/manuals" \
		--define "release_version $(VERSION)" deploy/rpm/fabric-exporter.spec

deps: ## install the Debian packages that the tests need, and fetch the kernel of the guest
	@scripts/install-packages $(STRANGERS) $(GUEST) $(BROWSER) $(PYTHON) $(SLURM) $(VERBS)
	@command -v npm >/dev/null || scripts/install-packages nodejs npm # one from elsewhere will do
	@CARGO_TARGET_DIR=$(TARGET) tests/kernel/prepare

cargo-deb:
	@# Unoptimized, and without what needs liblzma: a third of the time.
	@cargo deb --version >/dev/null 2>&1 \
		|| cargo install --locked --debug --no-default-features --features gzip cargo-deb@$(CARGO_DEB)

cargo-cyclonedx:
	@scripts/install-packages jq
	@cargo cyclonedx --version 2>/dev/null | grep -qF "$(CARGO_CYCLONEDX)" \
		|| cargo install --locked --debug cargo-cyclonedx@$(CARGO_CYCLONEDX)

clean: ## remove build output
	cargo clean
