PREFIX  ?= /usr/local
DESTDIR ?=
# What `make demo` is to be told besides, such as DEMO="--hosts 500 --speedup 10".
DEMO    ?=
# The programs that the exporter is to agree with.
STRANGERS := ibsim-utils opensm infiniband-diags prometheus prometheus-alertmanager prometheus-node-exporter tshark curl openssl
# What the guest of tests/kernel runs on, and what its module and its file system are made with.
GUEST := qemu-system-x86 binutils cpio gcc kmod libelf1 make util-linux xz-utils
# What Helm, Ansible and Kubernetes' schemas are run by, which judge deploy/.
PYTHON := python3 python3-venv
# What looks at the pages.
BROWSER := chromium chromium-driver
# Build dependencies of the cargo feature `verbs`, on by default.
VERBS := libibverbs-dev librdmacm-dev libclang-dev pkg-config
# For `make packages`: rpmbuild, and the packages that the guest's Debian is made of.
PACKERS := e2fsprogs ibverbs-providers init-system-helpers iproute2 kmod mawk rpm systemd udev
# Pinned: a newer release may reject an older tree.
CARGO_DENY := 0.20.2
CARGO_FUZZ := 0.13.2
# How long each fuzz target runs, and which: all, unless some are named.
SECONDS := 60
FUZZ    ?=
CARGO_DEB := 3.8.0
VERSION := $(shell sed -n '/^version = /{s/[^"]*"//;s/".*//p;q}' Cargo.toml)
# A stale Cargo.lock is refreshed while one works, and an error where the result is judged.
LOCKED  := $(if $(CI),--locked)
TARGET  := $(or $(CARGO_TARGET_DIR),target)
# opensm and the diagnostics live in sbin, which Debian leaves off a user's PATH.
export PATH := $(PATH):/usr/sbin:/sbin
# Told by fabric_exporter_build_info.
export FABRIC_EXPORTER_REVISION ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
.PHONY: help demo test lint policy packages advisories bench fuzz docs build dist install deb rpm deps cargo-deb clean
# cargo runs its own jobs; under `make -j` these would only queue for its lock, and for apt's.
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "All that compiles but demo needs Debian's $(VERBS);"
	@echo "test, bench and deps install them."

# The demo has no devices, so it is built without libibverbs. It has a target directory of its own, so
# that `make install` never installs it.
demo: ## watch a simulated fabric in which a cable goes bad (no InfiniBand needed)
	cargo build $(LOCKED) --profile demo --no-default-features --target-dir $(TARGET)/demo
	@$(TARGET)/demo/demo/fabric-exporter demo $(DEMO)

# Four tests at a time on two cores: a third of them waits for another program. `packages` has its own target.
test: deps ## install what is missing and run every test
	cargo test $(LOCKED) --workspace --features parquet --no-fail-fast -- --test-threads=4

lint: ## formatting, clippy, documentation
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
		|| rustup component add rustfmt clippy
	cargo fmt --check
	rustfmt --check --edition 2024 fuzz/targets/*.rs
	cargo clippy $(LOCKED) --workspace --features parquet --all-targets --test packages -- -D warnings
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
	cargo test $(LOCKED) --features parquet --test packages

# Apart from lint for two reasons: the advisory database comes from a git host that closed networks
# do not reach, and its verdict on a commit changes with the day, not with the commit.
advisories: policy ## known vulnerabilities in the dependencies (fetches the RustSec database)
	cargo deny $(LOCKED) check advisories

bench: deps ## measure against ibqueryerrors and node_exporter, on up to 162,000 simulated ports, under load, the pages and the rules
	cargo bench $(LOCKED) --bench scale
	cargo bench $(LOCKED) --bench health
	cargo bench $(LOCKED) --bench fabric
	cargo bench $(LOCKED) --bench history
	cargo bench $(LOCKED) --bench host
	cargo bench $(LOCKED) --bench load
	cargo bench $(LOCKED) --bench pages
	cargo bench $(LOCKED) --bench rules

# Apart from test: the fuzzers are built with a sanitizer and coverage, for which all dependencies are
# compiled once more. What they found and is kept, `make test` runs through.
fuzz: ## run each fuzz target for a minute (SECONDS=60, FUZZ="some targets"; SECONDS=keep takes what is new into the corpus)
	@command -v g++ >/dev/null || scripts/install-packages g++
	@cargo fuzz --version 2>/dev/null | grep -qF "$(CARGO_FUZZ)" || cargo install --locked cargo-fuzz@$(CARGO_FUZZ)
	@CARGO_TARGET_DIR=$(TARGET) scripts/fuzz $(SECONDS) $(FUZZ)

# Each test that compares a generated file with its source writes the file instead.
docs: ## regenerate man pages, completions, docs/metrics.md and other tables, examples, pictures, the OpenAPI description, alerts/compat, deploy/kubernetes
	UPDATE_DOCS=1 cargo test $(LOCKED) --lib --test web --test alerting --test fabric --test host --test deploy -- \
		openapi docs:: pages::pictures alert_table files_are_made dashboards::false_green faults_are_found \
		the_example manifests_are_made

build: ## release build
	cargo build $(LOCKED) --release

# `sudo make install` often has no cargo on its PATH: it then installs what `make build` left.
install: ## build and install the binary (PREFIX=/usr/local, DESTDIR=)
	@if command -v cargo >/dev/null; then $(MAKE) --no-print-directory build; fi
	install -D -m 755 $(TARGET)/release/fabric-exporter $(DESTDIR)$(PREFIX)/bin/fabric-exporter

dist: ## the optimized build that packages have, in target/dist
	cargo build $(LOCKED) --profile dist --features parquet

deb: cargo-deb dist ## a Debian package, below target/debian
	cargo deb $(LOCKED) --profile dist --no-build

rpm: dist ## an RPM, below target/rpm
	rpmbuild -bb --define "_topdir $(abspath $(TARGET))/rpm" --define "tree $(CURDIR)" \
		--define "binary $(abspath $(TARGET))/dist/fabric-exporter" \
		--define "release_version $(VERSION)" deploy/rpm/fabric-exporter.spec

deps: ## install the Debian packages the tests need, and fetch the kernel they boot
	@scripts/install-packages $(STRANGERS) $(GUEST) $(BROWSER) $(PYTHON) $(VERBS)
	@command -v npm >/dev/null || scripts/install-packages nodejs npm # one from elsewhere will do
	@CARGO_TARGET_DIR=$(TARGET) tests/kernel/prepare

cargo-deb:
	@# Unoptimized, and without what needs liblzma: a third of the time.
	@cargo deb --version >/dev/null 2>&1 \
		|| cargo install --locked --debug --no-default-features --features gzip cargo-deb@$(CARGO_DEB)

clean: ## remove what was built
	cargo clean
