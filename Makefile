# make test   builds and tests everything      make demo   runs the main job on real databases
#
# Both install the two libraries and git when these are missing (Debian and Ubuntu), and need nothing else but Swift.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

SWIFT ?= swift
# Where the demo looks for GeoPackages; it says so and goes on without them when there are none.
GPKG ?= ../shared/data/gpkg
# How the demo is built: debug shares its build with the tests and is there sooner, release is several times faster.
CONFIGURATION ?= debug
# How many rows the benchmarks' large tables have. Only a full run is written where others look for results.
BUCKIA_BENCH_ROWS ?= 1000000
# How often each implementation runs, instead of the suite's own number.
BUCKIA_BENCH_ROUNDS ?=
# One part of the benchmarks: apply, folder, diff, share, sync, backup, memory, peer or hosts. Results and README are left alone then.
PART ?=
RESULTS := $(if $(PART)$(BUCKIA_BENCH_ROUNDS)$(filter-out 1000000,$(BUCKIA_BENCH_ROWS)),.build/benchmarks/results,Benchmarks/results)
RECORDS := $(CURDIR)/.build/benchmarks/records
# Where the Python libraries that Buckia is compared with are installed.
PEERS := $(CURDIR)/.build/benchmarks/peers
# How busy the machine is before anything is built.
LOAD := $(shell cut -d' ' -f1 /proc/loadavg 2>/dev/null || sysctl -n vm.loadavg 2>/dev/null | cut -d' ' -f2)
# Debian's names of the libraries, and of git, which `buckia git` calls.
PACKAGES := libsqlite3-dev libzstd-dev git
# What only tests run: Debian's age, the servers that storages are tested against, and Python for those of PyPI.
TEST_PACKAGES := age zstd apache2-bin rclone nginx libnginx-mod-http-dav-ext lighttpd lighttpd-mod-webdav python3 python3-venv openssl sqlite3
# Homebrew's folder is on no search path by itself.
BREW := $(if $(filter Darwin,$(shell uname -s)),$(shell brew --prefix 2>/dev/null))
FLAGS := $(if $(BREW),-Xcc -I$(BREW)/include -Xlinker -L$(BREW)/lib)
# What Swift calls the C library.
BUILT_LIBRARY := libBuckiaC.$(if $(filter Darwin,$(shell uname -s)),dylib,so)
# What `make library` and `make extension` call what they make.
COLLECTED_LIBRARY := libbuckia$(suffix $(BUILT_LIBRARY))
BUILT_EXTENSION := .build/extension/buckia$(suffix $(BUILT_LIBRARY))
# With these traits the packages are fetched that the command line, BuckiaSync and BuckiaGRDB need. The demo and the documentation share
# the build of the tests.
TRAITS := --traits default,Command,GRDB
COMMAND := --traits default,Command
# How `make docs` calls the documentation compiler and describes the platform to it.
DOCC ?= $(if $(filter Darwin,$(shell uname -s)),xcrun docc,docc)
TRIPLE := $(shell $(SWIFT) -print-target-info 2>/dev/null | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p')
PLATFORM := $(if $(filter Darwin,$(shell uname -s)),-target $(TRIPLE)14.0 -sdk $(shell xcrun --show-sdk-path 2>/dev/null),-target $(TRIPLE))
# The modules whose names `import Buckia` brings along (Sources/Buckia/Exports.swift), separated by commas.
REEXPORTED := $(shell sed -n 's/^@_exported import //p' Sources/Buckia/Exports.swift | paste -s -d, -)
# On Linux the optimised command brings Swift's runtime with it, if the toolchain can do that: so it starts sooner, and runs
# where there is no Swift.
RUNTIMES := $(shell $(SWIFT) -print-target-info 2>/dev/null | sed -n 's/.*"runtimeResourcePath": "\(.*\)".*/\1/p')
STATIC := $(if $(wildcard $(RUNTIMES)_static/linux),--static-swift-stdlib)
# What is linked without being used goes, and so do the names of functions: debuggers have the debug build.
STRIPPED := $(if $(filter Darwin,$(shell uname -s)),-Xlinker -dead_strip -Xlinker -x,-Xlinker --gc-sections -Xlinker -s)
# How many random cases `make soak` tries of each property, and the number of the first.
SEEDS ?= 10000
FROM ?= 0
# The properties of applying, comparing and exchanging that it tries.
SOAKED := sameAsStock|equalEdits|resolvesCycles|againstSQLite|OwnTransactionTests.failure|OptimisticBatchTests.likeOneByOne|ContentIndexTests.sameRows|likeANewLook|likeRows|likeFilteredCopies|likeCommitted|asIfUpgradedBefore|tenVersions|VirtualMirrorTests|likeCounting|goodFileFollows|promisesHold|instantNetwork|SimulationTests.convergence|UpgradeTests.(upgrades|trust)|ConvergenceTests.randomHistories|anyOrder|anyChanges|MergePropertyTests|RebasePropertyTests|CollidingSharePropertyTests|shareHistories|PrintedShareTests|RelayTests.ring|ForgottenDeletionPropertyTests|UnsentEditTests|roundHistories
# A test that starts or passes is not worth a line, nor are the others of its line when its name has several; failures, suites
# and the closing line are.
INTERESTING := /^(✘|✔ Test run) / { rest = 0; print; fflush(); next } \
  rest { rest = !/(started|seconds)\.$$/; next } \
  /^(◇|✔ Test) / { rest = !/(started|seconds)\.$$/; next } { print; fflush() }

say = printf '== %s\n' '$(1)'

.PHONY: help build test soak recipe library wheel test-python extension extension-check package package-check demo docs bench bench-quick bench-tools bench-hosts lint dependencies clean

help: ## shows this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{ printf "  make %-13s %s\n", $$1, $$2 }'

build: dependencies ## builds the command line, optimised: .build/release/buckia
	@$(call say,building (a first build takes a few minutes))
	@$(SWIFT) build -c release --product buckia $(COMMAND) $(STATIC) $(STRIPPED) $(FLAGS)
	@echo "The command is $$($(SWIFT) build -c release --show-bin-path)/buckia"

test soak: PACKAGES += $(TEST_PACKAGES)
# What tests try is optimised (Package.swift). The demo and the documentation share their build.
test test-python demo docs: export BUCKIA_OPTIMIZED_TESTS := 1
test: dependencies lint ## checks the format, builds without warnings and runs all tests
	@$(call say,building)
	@mkdir -p .build
	@# A warning is printed only when its file is compiled: the files are touched, so that the next build says it again.
	@$(SWIFT) build --build-tests $(TRAITS) $(FLAGS) 2>&1 | tee .build/build.log | grep -vE '^\[[0-9]+/[0-9]+\] ' || test $${PIPESTATUS[0]} -eq 0
	@if grep -E '^($(CURDIR)/)?(Sources|Tests|Benchmarks)/.*: warning: ' .build/build.log; then \
	  grep -hoE '^[^:]*(Sources|Tests|Benchmarks)/[^:]*\.swift' .build/build.log | sort -u | xargs touch; \
	  echo 'The build has warnings; see above.' >&2; exit 1; \
	fi
	@$(call say,preparing the servers that storages are tested against)
	@Tests/Servers/prepare
	@$(call say,testing)
	@$(SWIFT) test --skip-build --disable-xctest $(TRAITS) $(FLAGS) 2>&1 | tee .build/test.log | awk '$(INTERESTING)' || test $${PIPESTATUS[0]} -eq 0
	@grep -hE 'Test run with [0-9]+ tests.* passed' .build/test.log >/dev/null || { echo 'The tests did not run to their end.' >&2; exit 1; }
	@$(call say,trying what the README says of using it in an app)
	@Tests/PackageRecipe/check $(FLAGS)
	@$(call say,testing the Python package)
	@products="$$($(SWIFT) build $(TRAITS) $(FLAGS) --show-bin-path)"; \
	  Tests/PythonTests/check "$$products/$(BUILT_LIBRARY)" "$$products/buckia"

# In a release build the cases take a third of the time. The tests need the internals: hence a build of its own.
soak: RELEASE := -c release $(TRAITS) -Xswiftc -enable-testing --scratch-path .build/soak $(FLAGS)
soak: dependencies ## tries many random cases of applying, comparing and exchanging (SEEDS=100000 FROM=0)
	@$(call say,building (a first build takes several minutes))
	@$(SWIFT) build -q --build-tests $(RELEASE)
	@$(call say,trying $(SEEDS) cases of each property from number $(FROM) on)
	@BUCKIA_SEEDS=$(SEEDS) BUCKIA_SEED_FROM=$(FROM) $(SWIFT) test --skip-build --disable-xctest --filter '$(SOAKED)' \
	  $(RELEASE) 2>&1 | tee .build/soak.log | awk '$(INTERESTING)' || test $${PIPESTATUS[0]} -eq 0

recipe: dependencies ## builds an app outside of this package as the README says, from nothing
	@if [ ! -e Package.resolved ]; then $(SWIFT) package resolve; fi
	@Tests/PackageRecipe/check --build $(FLAGS)

# SwiftPM brings Swift's runtime into programs only: what it has compiled is put together by a script. The dynamic library that it makes beside
# that is not used on Linux, and has to find the runtime all the same.
library: EXPORTS := $(CURDIR)/.build/library.exports
library: LIBRARY = -c release --product BuckiaC $(STATIC) $(FLAGS) \
  $(if $(filter Darwin,$(shell uname -s)),$(STRIPPED) -Xlinker -exported_symbols_list -Xlinker $(EXPORTS),-Xlinker -L$(RUNTIMES)_static/linux)
library: dependencies ## builds the library for C: .build/library
	@$(call say,building (a first build takes several minutes))
	@mkdir -p .build; Sources/CBuckia/collect exports '$(EXPORTS)'
	@$(SWIFT) build $(LIBRARY)
	@Sources/CBuckia/collect library "$$($(SWIFT) build $(LIBRARY) --show-bin-path)" '$(RUNTIMES)_static/linux' '$(EXPORTS)' .build/library
	@echo "The library is in $(CURDIR)/.build/library"

wheel: library build ## makes the Python package, with the command: .build/wheels
	@$(call say,making the wheel)
	@Sources/BuckiaPython/build-wheel '.build/library/$(COLLECTED_LIBRARY)' .build/wheels \
	  "$$($(SWIFT) build -c release --show-bin-path)/buckia"

test-python: dependencies ## tests the Python package alone, in an environment that has only its wheel
	@$(call say,building)
	@$(SWIFT) build -q --product BuckiaC $(TRAITS) $(FLAGS)
	@$(SWIFT) build -q --product buckia $(TRAITS) $(FLAGS)
	@$(call say,testing the Python package)
	@products="$$($(SWIFT) build $(TRAITS) $(FLAGS) --show-bin-path)"; \
	  Tests/PythonTests/check "$$products/$(BUILT_LIBRARY)" "$$products/buckia"

# The dynamic library of SwiftPM's is not used on Linux here, either.
extension: EXTENSION := -c release --product BuckiaExtension --disable-default-traits --scratch-path .build/extension \
  $(STATIC) $(if $(STATIC),-Xlinker -L$(RUNTIMES)_static/linux) $(if $(filter Darwin,$(shell uname -s)),$(STRIPPED)) $(FLAGS)
extension: dependencies ## builds the loadable extension for SQLite: .build/extension/buckia.so
	@$(call say,building (a first build takes several minutes))
	@$(SWIFT) build $(EXTENSION)
	@Sources/BuckiaExtension/collect "$$($(SWIFT) build $(EXTENSION) --show-bin-path)" '$(RUNTIMES)_static/linux' $(BUILT_EXTENSION)
	@echo "The extension is $(CURDIR)/$(BUILT_EXTENSION)"

extension-check: PACKAGES += debootstrap
extension-check: extension ## loads it in SQLite's shell, Python, PHP, Node.js, Perl, Ruby and Tcl of a bare Debian (needs root and the network)
	@Tests/BareDebian/run Tests/BareDebian/hosts .build/extension/buckia.so

# The library that reads the command's arguments has a program that makes manual pages of its help.
package: MANUAL := -c release --package-path .build/checkouts/swift-argument-parser --scratch-path .build/manual
package: build ## makes a tarball and a .deb of the command: .build/packages
	@$(call say,making the manual pages)
	@$(SWIFT) build -q --product generate-manual $(MANUAL)
	@rm -rf .build/manual/pages .build/packages; mkdir -p .build/manual/pages
	@command="$$($(SWIFT) build -c release --show-bin-path)/buckia"; \
	"$$($(SWIFT) build $(MANUAL) --show-bin-path)/generate-manual" "$$command" --multi-page --section 1 \
	  --date "$$(git log -1 --format=%cs 2>/dev/null || date +%F)" --output-directory .build/manual/pages; \
	$(call say,making the packages); \
	Sources/Packaging/package "$$command" .build/manual/pages .build/packages

package-check: PACKAGES += debootstrap
package-check: package ## installs the .deb in a bare Debian and tries it there (needs root and the network)
	@Tests/BareDebian/run Tests/BareDebian/command .build/packages/*.deb

demo: dependencies ## sends one person's changes into another person's database
	@$(call say,building (a first build takes a minute or more))
	@$(SWIFT) build -q -c $(CONFIGURATION) --product buckia $(TRAITS) $(FLAGS)
	@$(SWIFT) build -q -c $(CONFIGURATION) --product BuckiaDemo $(TRAITS) $(FLAGS)
	@"$$($(SWIFT) build -c $(CONFIGURATION) --show-bin-path)/BuckiaDemo" --sample Schemas/sample --geopackages "$(GPKG)"

# The symbols are extracted by hand, because the plugin for it leaves out what other modules declare and Buckia exports.
docs: dependencies ## builds the documentation: .build/documentation
	@$(call say,building)
	@$(SWIFT) build -q --target Buckia $(TRAITS) $(FLAGS)
	@$(call say,building the documentation)
	@rm -rf .build/symbols .build/documentation; mkdir -p .build/symbols
	@products="$$($(SWIFT) build --show-bin-path)"; maps=(); \
	for map in "$$products"/*.build/module.modulemap .build/checkouts/*/Sources/*/include/module.modulemap Sources/*/module.modulemap; do \
	  if [ -e "$$map" ]; then maps+=(-Xcc -fmodule-map-file="$$map"); fi; \
	done; \
	$(SWIFT) symbolgraph-extract -module-name Buckia $(PLATFORM) -I "$$products/Modules" "$${maps[@]}" \
	  $(if $(BREW),-Xcc -I$(BREW)/include) -experimental-allowed-reexported-modules=$(REEXPORTED) -output-dir .build/symbols
	@$(DOCC) convert Sources/Buckia/Buckia.docc --additional-symbol-graph-dir .build/symbols --warnings-as-errors \
	  --fallback-display-name Buckia --fallback-bundle-identifier Buckia \
	  --transform-for-static-hosting --output-path .build/documentation
	@echo 'The documentation is in .build/documentation. To read it, serve that folder and open /documentation/buckia:'
	@echo '  python3 -m http.server --directory .build/documentation'

bench: bench-tools $(if $(filter-out hosts,$(PART)),,bench-hosts) ## measures everything against the alternatives and writes Benchmarks/results (BUCKIA_BENCH_ROWS scales)
	@rm -rf '$(RECORDS)'; mkdir -p '$(RECORDS)'
	@$(call say,measuring (a full run takes the better part of an hour; other programs should rest))
	@# An interrupted benchmark leaves gigabytes behind: all temporary files go into a folder that is removed here. Apache, started as root,
	@# becomes somebody else, and has to get through it.
	@scratch="$$(mktemp -d "$${TMPDIR:-/tmp}/buckia-bench-run.XXXXXX")"; chmod 711 "$$scratch"; trap 'rm -rf "$$scratch"' EXIT; export TMPDIR="$$scratch"; \
	export BUCKIA_BENCH_PYTHON='$(PEERS)/bin/python' BUCKIA_BENCH_PEERS='$(CURDIR)/Benchmarks/Peers/peer.py'; \
	export BUCKIA_BENCH_SERVERS='$(CURDIR)/Tests/Servers'; \
	export BUCKIA_BENCH_LIBRARY='$(CURDIR)/.build/library' BUCKIA_BENCH_EXTENSION='$(CURDIR)/$(BUILT_EXTENSION)'; \
	suite="$$($(SWIFT) build -c release --show-bin-path)/BuckiaBenchmarkSuite"; \
	comparisons="$$("$$suite" list --rows '$(BUCKIA_BENCH_ROWS)' $(if $(PART),--part '$(PART)'))"; \
	for comparison in $$comparisons; do \
	  "$$suite" measure "$$comparison" --records '$(RECORDS)' --rows '$(BUCKIA_BENCH_ROWS)' \
	    $(if $(BUCKIA_BENCH_ROUNDS),--rounds '$(BUCKIA_BENCH_ROUNDS)') || true; \
	done; \
	"$$suite" report --records '$(RECORDS)' --output '$(RESULTS)' $(if $(PART),,--readme README.md) $(if $(LOAD),--load '$(LOAD)') \
	  --swift "$$($(SWIFT) --version 2>/dev/null | grep -oE 'Swift version [0-9.]+' | head -1)" \
	  --commit "$$(git describe --always --dirty 2>/dev/null || true)"

bench-quick: ## the same at a tenth of the size; its figures only tell that all works
	@$(MAKE) bench BUCKIA_BENCH_ROWS=100000

bench-tools: dependencies
	@$(call say,building (a first build takes several minutes))
	@$(SWIFT) build -q -c release --product buckia $(COMMAND) $(STATIC) $(FLAGS)
	@$(SWIFT) build -q -c release --product BuckiaBenchmarkSuite $(COMMAND) $(STATIC) $(FLAGS)
	@# An incomplete virtual environment is removed: its absence tells the benchmarks to skip Python.
	@if [ ! -e '$(PEERS)/complete' ] || [ Benchmarks/Peers/requirements.txt -nt '$(PEERS)/complete' ]; then \
	  rm -rf '$(PEERS)'; \
	  if command -v python3 >/dev/null && python3 -m venv '$(PEERS)' >/dev/null 2>&1 \
	    && '$(PEERS)/bin/pip' install -q --disable-pip-version-check -r Benchmarks/Peers/requirements.txt; then \
	    touch '$(PEERS)/complete'; \
	  else \
	    rm -rf '$(PEERS)'; \
	    echo 'Without python3, its venv module or the packages in Benchmarks/Peers/requirements.txt: Python peers are skipped.'; \
	  fi; \
	fi
	@command -v sqldiff >/dev/null || echo 'sqldiff is not installed (Debian: sqlite3-tools), so it is skipped.'

# What calls from other languages are measured with, in builds of their own: hence only where these are wanted.
bench-hosts: bench-tools library extension
	@$(call say,preparing the Python package)
	@if [ -e '$(PEERS)/complete' ]; then \
	  Sources/BuckiaPython/build-wheel '.build/library/$(COLLECTED_LIBRARY)' .build/wheels \
	    && '$(PEERS)/bin/pip' install -q --disable-pip-version-check --no-index --no-deps --force-reinstall .build/wheels/buckia-*.whl \
	    || { '$(PEERS)/bin/pip' uninstall -q -y buckia; echo 'Without its wheel the Python package is skipped.'; }; \
	fi

lint: ## checks the format of all sources
	@$(call say,checking the format)
	@$(SWIFT) format lint --strict -r Sources Tests Benchmarks Package.swift

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
	    : 'Packages with a service would start it, now and at each start of the system: tests only need the programs.'; \
	    policy=/usr/sbin/policy-rc.d; \
	    if [ -e "$$policy" ]; then policy=; else \
	      printf '#!/bin/sh\nexit 101\n' | $$as tee "$$policy" >/dev/null; $$as chmod 755 "$$policy"; \
	    fi; \
	    status=0; $$as apt-get install -y -qq --no-install-recommends $$missing >/dev/null || status=$$?; \
	    for service in nginx lighttpd; do \
	      case " $$missing " in *" $$service "*) $$as update-rc.d "$$service" disable >/dev/null 2>&1 || true;; esac; \
	    done; \
	    if [ -n "$$policy" ]; then $$as rm "$$policy"; fi; \
	    [ "$$status" = 0 ] || exit "$$status"; \
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
	@rm -rf .build
