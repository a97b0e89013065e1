PREFIX  ?= /usr/local
DESTDIR ?=
# What `make demo` is to be told besides, such as DEMO="--hosts 500 --speedup 10".
DEMO    ?=
# The programs that the exporter is to agree with.
STRANGERS := ibsim-utils opensm infiniband-diags prometheus prometheus-alertmanager prometheus-node-exporter tshark
# What the guest of tests/kernel runs on, and what its module and its file system are made with.
GUEST := qemu-system-x86 binutils cpio gcc kmod libelf1 make util-linux xz-utils
# What looks at the pages.
BROWSER := chromium chromium-driver
# What the cargo feature `verbs`, on by default, is built with.
VERBS := libibverbs-dev librdmacm-dev libclang-dev pkg-config
# Pinned: a newer release may hold an older tree to new rules.
CARGO_DENY := 0.20.2
# A stale Cargo.lock is refreshed while one works, and an error where the result is judged.
LOCKED  := $(if $(CI),--locked)
TARGET  := $(or $(CARGO_TARGET_DIR),target)
# opensm and the diagnostics live in sbin, which Debian leaves off a user's PATH.
export PATH := $(PATH):/usr/sbin:/sbin
# Told by fabric_exporter_build_info.
export FABRIC_EXPORTER_REVISION ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
.PHONY: help demo test lint advisories bench docs build install deps tools clean
# cargo runs its own jobs; under `make -j` these would only queue for its lock, and for apt's.
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "All that compiles but demo needs Debian's $(VERBS);"
	@echo "test, bench and deps install them."

# There are no devices in it, so it does without the libraries for them. It has a directory of its
# own, lest `make install` take it for the whole program.
demo: ## watch a simulated fabric in which a cable goes bad (no InfiniBand needed)
	cargo build $(LOCKED) --release --no-default-features --target-dir $(TARGET)/demo
	@$(TARGET)/demo/release/fabric-exporter demo $(DEMO)

test: deps lint ## install what is missing and run every check and test
	cargo test $(LOCKED) --no-default-features --lib host
	cargo test $(LOCKED)

lint: tools ## formatting, clippy, documentation, dependencies
	cargo fmt --check
	cargo clippy $(LOCKED) --all-targets -- -D warnings
	cargo clippy $(LOCKED) --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) --no-deps --quiet
	cargo deny $(LOCKED) check bans licenses sources

# Apart from lint for two reasons: the advisory database comes from a git host that closed networks
# do not reach, and its verdict on a commit changes with the day, not with the commit.
advisories: tools ## known vulnerabilities in the dependencies (fetches the RustSec database)
	cargo deny $(LOCKED) check advisories

bench: deps ## measure against ibqueryerrors and node_exporter, on up to 162,000 simulated ports, the pages and the rules
	cargo bench $(LOCKED) --bench scale
	cargo bench $(LOCKED) --bench health
	cargo bench $(LOCKED) --bench fabric
	cargo bench $(LOCKED) --bench history
	cargo bench $(LOCKED) --bench host
	cargo bench $(LOCKED) --bench pages
	cargo bench $(LOCKED) --bench rules

docs: ## write anew what is made from the code: docs/metrics.md, docs/compatibility.md, docs/pictures, the table of docs/alerts.md, alerts/compat, the API's description
	UPDATE_DOCS=1 cargo test $(LOCKED) --lib openapi
	UPDATE_DOCS=1 cargo test $(LOCKED) --test docs --test alerts
	UPDATE_DOCS=1 cargo test $(LOCKED) --test pages pictures
	UPDATE_DOCS=1 cargo test $(LOCKED) --test compat files_are_made

build: ## release build
	cargo build $(LOCKED) --release

# `sudo make install` often has no cargo on its PATH: it then installs what `make build` left.
install: ## build and install the binary (PREFIX=/usr/local, DESTDIR=)
	@if command -v cargo >/dev/null; then $(MAKE) --no-print-directory build; fi
	install -D -m 755 $(TARGET)/release/fabric-exporter $(DESTDIR)$(PREFIX)/bin/fabric-exporter

deps: ## install the Debian packages the tests need, and fetch the kernel they boot
	@scripts/install-packages $(STRANGERS) $(GUEST) $(BROWSER) $(VERBS)
	@command -v npm >/dev/null || scripts/install-packages nodejs npm # one from elsewhere will do
	@CARGO_TARGET_DIR=$(TARGET) tests/kernel/prepare

tools:
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
		|| rustup component add rustfmt clippy
	@cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny@$(CARGO_DENY)

clean: ## remove what was built
	cargo clean
