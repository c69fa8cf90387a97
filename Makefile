# make test   builds and tests everything      make demo   runs the main job on real databases
#
# Both install the two libraries they need when these are missing (Debian and Ubuntu), and need nothing else but Swift.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

SWIFT ?= swift
# Where the demo looks for GeoPackages; it says so and goes on without them when there are none.
GPKG ?= ../shared/data/gpkg
# How the demo is built: debug shares its build with the tests and is there sooner, release is several times faster.
CONFIGURATION ?= debug
# Debian's names of the libraries.
PACKAGES := libsqlite3-dev libzstd-dev
# Homebrew's folder is on no search path by itself.
BREW := $(if $(filter Darwin,$(shell uname -s)),$(shell brew --prefix 2>/dev/null))
FLAGS := $(if $(BREW),-Xcc -I$(BREW)/include -Xlinker -L$(BREW)/lib)
# How many random cases `make soak` tries of each property, and the number of the first.
SEEDS ?= 10000
FROM ?= 0
# The properties of applying that it tries.
SOAKED := sameAsStock|equalEdits|settles|againstSQLite|OwnTransactionTests.failure
# A test that starts or passes is not worth a line; failures, suites and the closing line are.
INTERESTING := /^✔ Test run / || !/^(◇|✔ Test) / { print; fflush() }

say = printf '== %s\n' '$(1)'

.PHONY: help build test soak demo bench lint dependencies clean

help: ## shows this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{ printf "  make %-13s %s\n", $$1, $$2 }'

build: dependencies ## builds the command line, optimised: .build/release/buckia
	@$(call say,building (a first build takes a few minutes))
	@$(SWIFT) build -c release --product buckia $(FLAGS)
	@echo "The command is $$($(SWIFT) build -c release --show-bin-path)/buckia"

test: dependencies lint ## checks the format, builds without warnings and runs all tests
	@$(call say,building)
	@mkdir -p .build
	@# A warning is printed only when its file is compiled: the files are touched, so that the next build says it again.
	@$(SWIFT) build --build-tests $(FLAGS) 2>&1 | tee .build/build.log | grep -vE '^\[[0-9]+/[0-9]+\] ' || test $${PIPESTATUS[0]} -eq 0
	@if grep -E '^($(CURDIR)/)?(Sources|Tests)/.*: warning: ' .build/build.log; then \
	  grep -hoE '^[^:]*(Sources|Tests)/[^:]*\.swift' .build/build.log | sort -u | xargs touch; \
	  echo 'The build has warnings; see above.' >&2; exit 1; \
	fi
	@$(call say,testing)
	@$(SWIFT) test --skip-build --disable-xctest $(FLAGS) 2>&1 | tee .build/test.log | awk '$(INTERESTING)' || test $${PIPESTATUS[0]} -eq 0
	@grep -hE 'Test run with [0-9]+ tests.* passed' .build/test.log >/dev/null || { echo 'The tests did not run to their end.' >&2; exit 1; }

# The debug build is as good as the other here: most of the time is SQLite's.
soak: dependencies ## tries many random cases of applying against SQLite's own (SEEDS=100000 FROM=0)
	@$(call say,building)
	@$(SWIFT) build -q --build-tests $(FLAGS)
	@$(call say,trying $(SEEDS) cases of each property from number $(FROM) on)
	@BUCKIA_SEEDS=$(SEEDS) BUCKIA_SEED_FROM=$(FROM) $(SWIFT) test --skip-build --disable-xctest --filter '$(SOAKED)' \
	  $(FLAGS) 2>&1 | tee .build/soak.log | awk '$(INTERESTING)' || test $${PIPESTATUS[0]} -eq 0

demo: dependencies ## sends one person's changes into another person's database
	@$(call say,building (a first build takes a minute or more))
	@$(SWIFT) build -q -c $(CONFIGURATION) --product buckia $(FLAGS)
	@$(SWIFT) build -q -c $(CONFIGURATION) --product BuckiaDemo $(FLAGS)
	@"$$($(SWIFT) build -c $(CONFIGURATION) --show-bin-path)/BuckiaDemo" --sample Schemas/sample --geopackages "$(GPKG)"

bench: dependencies ## measures the engine against the alternatives (some minutes; BUCKIA_BENCH_ROWS sets the size)
	@$(call say,building and measuring)
	@$(SWIFT) package -c release --package-path Benchmarks benchmark

lint: ## checks the format of all sources
	@$(call say,checking the format)
	@$(SWIFT) format lint --strict -r Sources Tests Package.swift \
	  Benchmarks/Package.swift Benchmarks/Sources Benchmarks/Benchmarks

dependencies:
	@command -v $(SWIFT) >/dev/null || { \
	  echo 'Swift 6.2 or newer is needed and "$(SWIFT)" is not on the PATH. See https://www.swift.org/install' >&2; exit 1; }
	@if command -v dpkg >/dev/null; then \
	  missing=''; \
	  for package in $(PACKAGES); do \
	    dpkg -s "$$package" 2>/dev/null | grep -q '^Status: install ok installed' || missing="$$missing $$package"; \
	  done; \
	  if [ -n "$$missing" ]; then \
	    as=''; \
	    if [ "$$(id -u)" -ne 0 ]; then \
	      command -v sudo >/dev/null || { echo "Please install as root: apt-get install$$missing" >&2; exit 1; }; \
	      as=sudo; \
	    fi; \
	    echo "Installing what is missing:$$missing"; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    $$as apt-get update -qq >/dev/null; \
	    $$as apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	  fi; \
	elif [ "$$(uname -s)" = Darwin ]; then \
	  [ -n '$(BREW)' ] && [ -e '$(BREW)/include/zstd.h' ] || { \
	    echo 'Please install zstd first: brew install zstd (SQLite comes with macOS)' >&2; exit 1; }; \
	else \
	  for header in sqlite3.h zstd.h; do \
	    printf '#include <%s>\n' "$$header" | cc -E - >/dev/null 2>&1 || { \
	      echo "The development files of SQLite and zstd are needed ($$header is missing)." >&2; \
	      echo 'Fedora: dnf install sqlite-devel libzstd-devel · Arch: pacman -S sqlite zstd' >&2; exit 1; }; \
	  done; \
	fi

clean: ## removes everything that was built
	@rm -rf .build Benchmarks/.build
