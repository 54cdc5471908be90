# The only list of commands. `make` alone prints it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Each target that measures wants the machine for itself, and cargo is parallel on its own.
.NOTPARALLEL:

# Cargo's own variable says where it builds; rustup installs where a fresh shell may not look yet.
CARGO := $(or $(shell command -v cargo),$(wildcard $(HOME)/.cargo/bin/cargo))
TARGET := $(or $(CARGO_TARGET_DIR),target)
AIODB := $(TARGET)/release/aiodb

# The package is named by its manifest, since a library that it uses has the same name. RocksDB takes its checksums
# from hardware only where it is built for this processor.
COMPARE := CXXFLAGS=-march=native $(CARGO) run --locked --release --manifest-path crates/compare/Cargo.toml --

JAVA_17 := /usr/lib/jvm/java-17-openjdk-$(shell dpkg --print-architecture 2>/dev/null)

# Without the progress of downloads, which fills logs. Maven takes the newest virtual machine unless told otherwise.
MVN = $(if $(wildcard $(JAVA_17)),JAVA_HOME=$(JAVA_17)) mvn --batch-mode --no-transfer-progress --file java/pom.xml

# `make bench-compare QUICK=1` is the small form.
QUICK :=

# Of `make bench-cassandra`, as scripts/bench-cassandra.sh takes them, and of other targets that say so.
ARGUMENTS :=

# Where data and results go: a directory on the disk to be measured.
RUN := build/run
BENCH := build/bench

# What campaigns/ declares is measured by harness/, in a Python of its own with locked packages.
VENV := build/venv
HARNESS := PYTHONPATH=harness/src $(VENV)/bin/python -m harness

# What clients/ needs, and the server that it tests.
CLIENTS := build/clients
AIODB_DEBUG := $(abspath $(TARGET))/debug/aiodb

# New inputs of fuzzers stay here; what the repository keeps is fuzz/corpus.
FUZZ_FOUND := build/fuzz
FUZZ_TOOLS := $(CURDIR)/build/tools

.PHONY: help
help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 30

.PHONY: run
run: $(RUN)/loaded ## Build, load a real data set, read it back and check it, measure briefly, write a report
	scripts/install-packages.sh fio
	$(AIODB) sample $(RUN)/unihan $(RUN)/unihan.tsv --count 100000
	$(AIODB) bench queue-depth --quick --dir $(RUN) --report $(RUN)/report.html
	$(AIODB) bench copy-size --pairs 100000 --rounds 3 --round-ms 500 --dir $(RUN) --report $(RUN)/report.html
	@echo
	@echo "The report with the figures: $(CURDIR)/$(RUN)/report.html"
	@echo "The store with the data set: $(CURDIR)/$(RUN)/unihan"
	@echo "Try: $(AIODB) get $(RUN)/unihan 'U+4E00 kDefinition'"

.PHONY: test
test: test-rust test-planted test-java test-harness test-clients ## Run all tests

.PHONY: test-rust
test-rust: compiler ## Run the tests of the crates
	scripts/install-packages.sh redis-server
	$(CARGO) test --locked --no-fail-fast

# Orders of threads of a kind in which a planted race must show, and kills after which a loss must.
PLANTED_SCHEDULES := 1000
PLANTED_KILLS := 60

.PHONY: test-planted
test-planted: compiler ## Plant known bugs one by one: simulator, orders of threads and kills must find theirs
	$(CARGO) test --locked --package aiodb-sim --features planted-bugs --test planted -- --nocapture
	$(MAKE) --no-print-directory race-planted SCHEDULES=$(PLANTED_SCHEDULES)
	$(CARGO) build --locked --package aiodb-cli --features planted-bugs
	cp $(TARGET)/debug/aiodb $(TARGET)/debug/aiodb-planted
	$(CARGO) run --locked --package aiodb-crash -- --aiodb $(TARGET)/debug/aiodb-planted --dir $(RUN)/planted --seed 1 \
		planted --kills $(PLANTED_KILLS) || { echo "test result: planted bugs under kills: 0 passed; 1 failed;"; exit 1; }

.PHONY: java
java: native ## Build the jars: the interface of stores, aiodb, RocksDB, LMDB, Redis and MySQL behind it, and Cassandra's plug-in
	$(MVN) package -DskipTests
	@echo "The jars: $(CURDIR)/java/store*/target/*.jar $(CURDIR)/java/cassandra/target/*.jar"

.PHONY: ycsb
ycsb: native ## Build YCSB over aiodb, RocksDB, LMDB, MySQL, Redis and CQL, for bin/ycsb
	$(MVN) --projects ycsb --also-make package -DskipTests
	@echo "Try: bin/ycsb load aiodb -P workloads/workloada -p store.directory=build/ycsb"

.PHONY: test-java
test-java: native ## Run the tests of the jars, and the shorter ones on a real Cassandra node (2 GB of memory)
	scripts/install-packages.sh redis-server mariadb-server
	$(MVN) --fail-at-end -Daiodb.rounds=1 -Daiodb.runs=1 package
	@echo "On nodes this was a part: make test-cassandra has the long tests and more rounds, make test-cluster several nodes"

.PHONY: test-cassandra
test-cassandra: java ## Compare aiodb with Cassandra's memtable on real nodes, mostly one at a time (an hour, 3 GB of memory)
	$(MVN) --projects cassandra-tests -Dgroups='!slow' package

# With which stores behind the memtable.
STORES := rocksdb mysql redis

# How single rows of MySQL are read, beside SQL.
ACCESS := direct handler procedure

.PHONY: test-cassandra-stores
test-cassandra-stores: java ## Compare statements over other stores than aiodb, and mix these as replicas (STORES=, ACCESS=; over an hour)
	for store in $(STORES); do $(MVN) --projects cassandra-tests -Dtest=StatementsTest -Daiodb.store=$$store package; done
	for access in $(ACCESS); do \
		$(MVN) --projects cassandra-tests -Dtest=StatementsTest -Daiodb.store=mysql -Daiodb.access=$$access package; \
		$(MVN) --projects cassandra-tests -Dtest='ServerStoresTest#aServerThatIsKilled*' -Dgroups=long -Daiodb.rounds=1 \
			-Daiodb.servers=mysql -Daiodb.access=$$access package; \
	done
	$(MVN) --projects cassandra-tests -Dtest=MixedStoresTest -Dgroups=slow -Daiodb.mixed=aiodb,mysql,redis package

.PHONY: test-harness
test-harness: compiler $(VENV)/ready ## Check and test the harness of the campaigns
	scripts/install-packages.sh iproute2 nodejs
	$(CARGO) build --locked --package aiodb-cli
	cd harness && $(CURDIR)/$(VENV)/bin/ruff format --check . && $(CURDIR)/$(VENV)/bin/ruff check .
	cd harness && $(CURDIR)/$(VENV)/bin/mypy
	cd harness && AIODB=$(AIODB_DEBUG) $(CURDIR)/$(VENV)/bin/python -m pytest

# Each language alone: make test-clients-python. A test that hangs ends the language's tests.
.PHONY: test-clients
test-clients: test-clients-python test-clients-node test-clients-go test-clients-java ## Run clients of Redis, and what is built on them, against the server and a redis-server

.PHONY: server
server: compiler
	scripts/install-packages.sh redis-server
	$(CARGO) build --locked --package aiodb-cli

.PHONY: test-clients-python
test-clients-python: server $(CLIENTS)/python/ready
	cd clients/python && $(CURDIR)/$(CLIENTS)/python/bin/ruff format --check . && $(CURDIR)/$(CLIENTS)/python/bin/ruff check .
	cd clients/python && AIODB=$(AIODB_DEBUG) timeout 600 $(CURDIR)/$(CLIENTS)/python/bin/python -m pytest

.PHONY: test-clients-node
test-clients-node: server $(CLIENTS)/node/ready
	ln -sfn $(CURDIR)/$(CLIENTS)/node/node_modules clients/node/node_modules
	cd clients/node && AIODB=$(AIODB_DEBUG) timeout 600 node --test --test-reporter=spec

.PHONY: test-clients-go
test-clients-go: server
	command -v go > /dev/null || scripts/install-packages.sh golang-go
	cd clients/go && found=$$(gofmt -l .) && { test -z "$$found" || { echo "make: gofmt changes $$found" >&2; exit 1; }; }
	cd clients/go && go vet ./...
	cd clients/go && AIODB=$(AIODB_DEBUG) go test -count=1 -timeout=600s -v ./...

# What the jar of stores on Redis must do, with this server in the place of redis-server.
.PHONY: test-clients-java
test-clients-java: server
	scripts/install-packages.sh openjdk-17-jdk-headless maven
	$(MVN) --projects store-redis --also-make -Daiodb.command=$(AIODB_DEBUG) \
		-Dtest=RedisContractTest -Dsurefire.failIfNoSpecifiedTests=false package

# `make cluster N=3`; scripts/cluster.sh says what else can be done with it.
N := 1

.PHONY: cluster
cluster: ## Start a local cluster of real Apache Cassandra nodes (N=)
	scripts/cluster.sh create $(N)
	scripts/cluster.sh status

.PHONY: test-cluster
test-cluster: java ## Test clusters of real nodes: replicas, repair, members that come and go (half an hour, 3 GB of memory)
	scripts/test-cluster.sh
	$(MVN) --projects cassandra-tests -Dgroups=slow package

# How much of each: `make crash KILLS=1000`.
KILLS := 300
RUNS := 6
CUTS := 60
SECONDS_EACH := 60
SCHEDULES := 1000

.PHONY: crash
crash: release ## Kill the command under load, hundreds of times, and check what is there (KILLS=)
	$(CARGO) run --locked --release --package aiodb-crash -- --aiodb $(AIODB) --dir $(RUN)/crash kill --kills $(KILLS)

.PHONY: crash-planted
crash-planted: compiler ## Plant known bugs in the command one by one: kills must show each (KILLS=)
	$(CARGO) build --locked --profile sim --package aiodb-cli --features planted-bugs
	$(CARGO) run --locked --release --package aiodb-crash -- --aiodb $(TARGET)/sim/aiodb --dir $(RUN)/crash --seed 1 \
		planted --kills $(KILLS)

.PHONY: crash-power
crash-power: release ## Cut the power below the file system, and check what is there (RUNS= CUTS=; as root)
	scripts/install-packages.sh e2fsprogs mount
	$(CARGO) run --locked --release --package aiodb-crash --features power -- --aiodb $(AIODB) --dir $(RUN)/crash \
		power --runs $(RUNS) --cuts $(CUTS)

.PHONY: fuzz
fuzz: compiler ## Fuzz the decoders and whole operation sequences (SECONDS_EACH=; needs a nightly compiler)
	command -v cargo-fuzz $(FUZZ_TOOLS)/bin/cargo-fuzz > /dev/null || \
		$(CARGO) install cargo-fuzz --locked --root $(FUZZ_TOOLS)
	for target in $$(ls fuzz/corpus); do \
		mkdir -p $(FUZZ_FOUND)/$$target; \
		PATH="$$PATH:$(FUZZ_TOOLS)/bin" $(CARGO) +nightly fuzz run --fuzz-dir fuzz $$target $(FUZZ_FOUND)/$$target \
			fuzz/corpus/$$target -- -max_total_time=$(SECONDS_EACH) -max_len=4096 -print_final_stats=1; \
	done

.PHONY: race
race: compiler ## Run the engine's threads in thousands of chosen orders (SCHEDULES=)
	AIODB_SCHEDULES=$(SCHEDULES) $(CARGO) test --locked --package aiodb --features shuttle --lib --test interleavings interleavings

# A planted bug, and the test that must find it.
RACES := EpochMovesUnderReaders:interleavings_of_pins \
	WakeLost:interleavings_of_group_commit AckBeforeFlush:interleavings_of_group_commit \
	CachedLifeForgotten:interleavings_of_readers_and_reclaim \
	MoveBeatsPut:interleavings_of_reads_moves_and_reuse \
	FreedUnderReader:interleavings_of_reads_moves_and_reuse \
	EpochMovesUnderReaders:interleavings_of_reads_moves_and_reuse \
	PublishedAskedLate:interleavings_of_operands_and_folding \
	DeleteGoneEarly:interleavings_of_puts_deletes_and_settling \
	PublishedAskedLate:interleavings_of_puts_deletes_and_settling \
	LateBaseHidesOperands:interleavings_of_durable_writes_operands_and_checkpoints \
	OperandHidesWhatWasMade:interleavings_of_snapshots_and_overtaken_operands \
	MissedOperandOverlooked:interleavings_of_folding_by_writers \
	FoldOverlooksLater:interleavings_of_merges_that_are_applied \
	FoldOverlooksWaiting:interleavings_of_merges_that_are_applied \
	ChangeCountedEarly:interleavings_of_puts_and_checkpoints ReserveNotedLate:interleavings_of_the_reserve \
	ChunksOfAnotherTable:interleavings_of_batches_and_truncates \
	BatchTornByTruncate:interleavings_of_batches_and_truncates TurnAskedLate:interleavings_of_full_memtables \
	StepEndsBeforeItsTurn:interleavings_of_steps_and_writers \
	ClaimUnseen:interleavings_of_merges_side_by_side \
	OldLookUpBelieved:interleavings_of_moves_and_commits \
	NamesOverOlderChanges:interleavings_of_names_and_checkpoints \
	BatchTornBySwap:interleavings_of_batches_and_swaps BatchSeenInPart:interleavings_of_batches_and_gets \
	BatchSeenBetween:interleavings_of_keys_that_a_batch_changes_again ScanOfTableThatIsGone:interleavings_of_scans_and_truncates \
	TableGoneBeforeItsName:interleavings_of_puts_and_truncates SwapNameByName:interleavings_of_calls_and_swaps \
	TableChangeMissed:interleavings_of_checkpoints_and_changes_of_tables \
	FrozenVersionsUnseen:interleavings_of_snapshots_and_spills \
	MemtableBoundKept:interleavings_of_budgets_and_memtables \
	SlotsMeasuredEarly:interleavings_of_slots_that_are_counted \
	PreferencesLostWithShard:interleavings_of_budgets_and_refused_blocks \
	SpillBesideCheckpoint:interleavings_of_spills_and_checkpoints RunsAskedEarly:interleavings_of_scans_and_spills \
	CheckpointAmidSpill:interleavings_of_spills_and_checkpoints \
	ModesLostByTruncate:interleavings_of_modes_and_everything_else

.PHONY: race-planted
race-planted: compiler ## Plant races in the engine one by one: its threads' orders must show each (SCHEDULES=)
	run() { AIODB_SCHEDULES=$(SCHEDULES) $(CARGO) test --locked --quiet --package aiodb --features shuttle,planted-bugs \
		--lib --test interleavings "$$@"; }; \
	run every_planted_bug_has_a_finder || exit 1; \
	found=0; missed=0; \
	for race in $(RACES); do \
		if AIODB_PLANTED=$${race%%:*} run "$${race##*:}" > /dev/null 2>&1; \
		then echo "$$race: not found"; missed=$$((missed + 1)); \
		else echo "$$race: found"; found=$$((found + 1)); fi; \
	done; \
	echo "test result: races that were planted: $$found passed; $$missed failed;"; \
	[ "$$missed" -eq 0 ]

.PHONY: sim
sim: compiler ## Crash the engine on a simulated machine, against a model (SEEDS=1000, MINUTES=, TABLES=lsm)
	$(CARGO) run --locked --profile sim --package aiodb-sim -- $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(TABLES),--tables $(TABLES))

.PHONY: sim-planted
sim-planted: compiler ## Plant known bugs in the engine one by one: the simulator must find each
	$(CARGO) run --locked --profile sim --package aiodb-sim --features planted-bugs -- --planted all

.PHONY: sim-coverage
sim-coverage: compiler ## Which lines of the engine the simulator runs through (SEEDS=1000)
	rustup component add llvm-tools
	scripts/sim-coverage.sh $(or $(SEEDS),1000)

.PHONY: check
check: compiler ## Check formatting, lints and documentation, then run all tests
	scripts/install-packages.sh shellcheck libclang-dev
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets -- --deny warnings
# The headers of RocksDB are enough for lints: with DOCS_RS it is not built.
	DOCS_RS=1 $(CARGO) clippy --locked --all-targets --manifest-path crates/compare/Cargo.toml -- --deny warnings
	RUSTDOCFLAGS='--deny warnings' $(CARGO) doc --locked --no-deps
	shellcheck --external-sources scripts/*.sh harness/*.sh bin/* .ci/run
	$(MAKE) test

.PHONY: bench
bench: release ## Measure everything against the limits of the disk under build/ (hours)
	scripts/install-packages.sh fio
	mkdir -p $(BENCH)
	$(AIODB) bench queue-depth --dir $(BENCH) --report $(BENCH)/report.html
	$(AIODB) bench copy-size --dir $(BENCH) --report $(BENCH)/report.html
	$(AIODB) bench write --dir $(BENCH) --report $(BENCH)/report.html
	$(AIODB) bench scan --dir $(BENCH) --report $(BENCH)/report.html
	$(AIODB) bench cache --dir $(BENCH) --report $(BENCH)/report.html
	@echo "The report with the figures: $(CURDIR)/$(BENCH)/report.html"

# `make campaign NAME=queue-depth QUICK=1`; campaigns/ has them, and which slices each has: SLICE=threads.
NAME :=
SLICE :=
VARIANT = $(if $(QUICK),--quick) $(if $(SLICE),--slice $(SLICE))

.PHONY: campaign
campaign: $(VENV)/ready ## Run a declared experiment and draw its report (NAME= SLICE= QUICK=1 RETRY=1)
	@test -n "$(NAME)" || { $(HARNESS) list; echo "make: which one? make campaign NAME=queue-depth QUICK=1" >&2; exit 1; }
	packages=$$($(HARNESS) needs $(NAME) $(VARIANT) --packages); scripts/install-packages.sh $$packages
	targets=$$($(HARNESS) needs $(NAME) $(VARIANT)); $(MAKE) --no-print-directory $$targets
	$(HARNESS) run $(NAME) $(VARIANT) $(if $(RETRY),--retry) --aiodb $(AIODB)

.PHONY: plan
plan: $(VENV)/ready ## Say what campaigns would run, how long each takes and its room, without running them (NAME=)
	@$(HARNESS) check $(or $(NAME),$(notdir $(basename $(wildcard campaigns/*.toml))))

.PHONY: publish
publish: $(VENV)/ready ## Put what a campaign measured into results/, small enough to be committed (NAME= SLICE= QUICK=1)
	$(HARNESS) publish $(NAME) $(VARIANT)

# `make size REQUIREMENT=requirements/readings.toml`; docs/sizing.md says what it holds.
REQUIREMENT :=

.PHONY: size
size: $(VENV)/ready ## How many nodes a requirement takes, by what was published (REQUIREMENT=file.toml JSON=1 HTML=page.html)
	@test -n "$(REQUIREMENT)" || { ls requirements/*.toml; echo "make: which one? make size REQUIREMENT=file.toml" >&2; exit 1; }
	@$(HARNESS) size $(REQUIREMENT) $(if $(JSON),--json) $(if $(HTML),--html $(HTML))

.PHONY: reports
reports: $(VENV)/ready ## Draw the reports of all that is published in results/
	$(HARNESS) reports

.PHONY: figures
figures: $(VENV)/ready ## Put tables, numbers and pictures of the documents as they are published
	$(HARNESS) figures

# Memory of the process that is measured, page cache included.
MEMORY := 512M

.PHONY: bench-soak
bench-soak: release ## Insert 50 million small records with little memory, and see whether the rate falls; as root (MEMORY=512M KEYS=)
	mkdir -p $(BENCH)
	scripts/with-memory.sh $(MEMORY) $(AIODB) bench soak $(if $(KEYS),--keys $(KEYS)) --dir $(BENCH) --report $(BENCH)/report.html

# Of the file system that `make bench-churn` gives the store, as scripts/with-space.sh takes it: 3000M is 1.5 times the live data. None:
# the disk under build/.
SPACE :=

.PHONY: bench-churn
bench-churn: release ## Overwrite data five times: what that costs in space and writes (half an hour; SPACE=3000M: in so much space, as root; ARGUMENTS=)
	mkdir -p $(BENCH)
	$(if $(SPACE),scripts/install-packages.sh e2fsprogs)
	$(if $(SPACE),scripts/with-space.sh $(BENCH) $(SPACE)) $(AIODB) bench churn --report $(BENCH)/report.html \
		$(ARGUMENTS) $(if $(SPACE),,--dir $(BENCH))

.PHONY: bench-merge
bench-merge: release ## Measure merges into counters beside puts, and gets of both (10 minutes; ARGUMENTS=)
	mkdir -p $(BENCH)
	$(AIODB) bench merge --writers 1,8 --dir $(BENCH) --report $(BENCH)/report.html $(ARGUMENTS)

.PHONY: bench-compare
bench-compare: compiler ## Measure data larger than memory beside LMDB, RocksDB, redb and fjall (hours; QUICK=1: 15 minutes)
	scripts/install-packages.sh clang libclang-dev liburing-dev pkg-config
	mkdir -p $(BENCH)
	$(COMPARE) workloads --dir $(BENCH) $(if $(QUICK),--quick,--sweep) --json $(BENCH)/workloads.json
	@echo "The figures: $(CURDIR)/$(BENCH)/workloads.json"

.PHONY: bench-compare-soak
bench-compare-soak: compiler ## Insert 50 million small records beside RocksDB and fjall, as root (hours; QUICK=1: 10 minutes; MEMORY=512M ARGUMENTS=)
	scripts/install-packages.sh clang libclang-dev liburing-dev pkg-config
	mkdir -p $(BENCH)
	$(COMPARE) soak --dir $(BENCH) $(if $(QUICK),--quick,--sweep --memory $(MEMORY)) --json $(BENCH)/soak.json $(ARGUMENTS)
	@echo "The figures: $(CURDIR)/$(BENCH)/soak.json"

.PHONY: bench-compare-churn
bench-compare-churn: compiler ## Overwrite data five times beside RocksDB, BlobDB, fjall, LMDB and redb, as root (hours; QUICK=1: the small form; ARGUMENTS=)
	scripts/install-packages.sh clang libclang-dev liburing-dev pkg-config
	mkdir -p $(BENCH)
	$(COMPARE) churn --dir $(BENCH) $(if $(QUICK),--quick) --json $(BENCH)/churn.json $(ARGUMENTS)
	@echo "The figures: $(CURDIR)/$(BENCH)/churn.json"

.PHONY: bench-compare-merge
bench-compare-merge: compiler ## Measure merges into counters beside the same engines, as root (hours; QUICK=1: the small form; ARGUMENTS=)
	scripts/install-packages.sh clang libclang-dev liburing-dev pkg-config
	mkdir -p $(BENCH)
	$(COMPARE) merge --dir $(BENCH) $(if $(QUICK),--quick) --json $(BENCH)/merge.json $(ARGUMENTS)
	@echo "The figures: $(CURDIR)/$(BENCH)/merge.json"

.PHONY: check-compare
check-compare: compiler ## Build, lint and test the comparison itself, with RocksDB from source
	scripts/install-packages.sh clang libclang-dev liburing-dev pkg-config
	CXXFLAGS=-march=native $(CARGO) clippy --locked --release --all-targets --manifest-path crates/compare/Cargo.toml \
		-- --deny warnings
	CXXFLAGS=-march=native $(CARGO) test --locked --release --manifest-path crates/compare/Cargo.toml

.PHONY: bench-cassandra
bench-cassandra: java ## Measure aiodb under Cassandra beside its own memtables and one that does nothing (an hour; ARGUMENTS=)
	mkdir -p $(BENCH)
	scripts/bench-cassandra.sh --out=$(BENCH)/cassandra.json $(ARGUMENTS)
	@echo "The figures: $(CURDIR)/$(BENCH)/cassandra.json"

.PHONY: bench-cassandra-nodes
bench-cassandra-nodes: java ## Measure nodes that join and repairs, beside Cassandra's own memtables (an hour, 5 GB of memory, 25 GB of disk)
	mkdir -p $(BENCH)
	scripts/bench-cassandra-nodes.sh $(BENCH)/cassandra-nodes.json
	@echo "The figures: $(CURDIR)/$(BENCH)/cassandra-nodes.json"

.PHONY: bench-serve
bench-serve: release ## Measure `aiodb serve` beside redis-server with redis-benchmark, as root (20 minutes; ARGUMENTS=)
	scripts/install-packages.sh redis-server
	mkdir -p $(BENCH)
	AIODB=$(AIODB) scripts/bench-serve.sh --out=$(BENCH)/server.json $(ARGUMENTS)

.PHONY: bench-disks
bench-disks: release ## Measure a store on one and on two disks, which are throttled loop devices; as root
	scripts/install-packages.sh fio e2fsprogs
	mkdir -p $(BENCH)
	for count in 1 2; do \
		scripts/throttled-disks.sh $(BENCH) $$count 2000 $(AIODB) bench queue-depth --pairs 100000 --threads 1 \
			--index lmdb --backends uring --depths 64,256 --max-seconds 20 --json-file $(BENCH)/throttled-disks-$$count.json; \
	done
	@echo "The figures: $(CURDIR)/$(BENCH)/throttled-disks-{1,2}.json"

.PHONY: bench-compare-writes
bench-compare-writes: compiler ## Measure durable puts beside RocksDB, which is built from source (an hour)
	scripts/install-packages.sh clang libclang-dev liburing-dev pkg-config
	mkdir -p $(BENCH)
	$(COMPARE) durable-puts --dir $(BENCH) --seconds 120 --sweep --json $(BENCH)/durable-puts.json
	@echo "The figures: $(CURDIR)/$(BENCH)/durable-puts.json"

.PHONY: fmt
fmt: cargo ## Format the code
	$(CARGO) fmt --all

.PHONY: clean
clean: ## Remove what was built, loaded and measured
	$(if $(CARGO),$(CARGO) clean)
	rm -rf build java/target java/*/target clients/node/node_modules

# What the targets above need.

.PHONY: cargo
cargo:
	@test -n "$(CARGO)" || { echo "make: cargo is missing: install Rust from https://rustup.rs and try again" >&2; exit 1; }

# The LMDB library is C.
.PHONY: compiler
compiler: cargo
	@scripts/install-packages.sh build-essential

# The libraries that go into the jar of `java/store-aiodb`, one directory for each platform.
NATIVE := build/native/linux-$(shell uname -m)

.PHONY: native
native: compiler
	scripts/install-packages.sh openjdk-17-jdk-headless maven
	$(CARGO) build --locked --release --package aiodb-jni
	mkdir -p $(NATIVE)
	strip --strip-debug -o $(NATIVE)/libaiodb_jni.so $(TARGET)/release/libaiodb_jni.so

$(VENV)/ready: harness/requirements.txt
$(CLIENTS)/python/ready: clients/python/requirements.txt
$(VENV)/ready $(CLIENTS)/python/ready:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: this needs Python 3.11 or later" >&2; exit 1; }
	python3 -c 'import ensurepip, venv' 2> /dev/null || scripts/install-packages.sh python3-venv
	python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --require-hashes --requirement $<
	touch $@

# The packages are installed as they are: none of their own scripts is run.
$(CLIENTS)/node/ready: clients/node/package.json clients/node/package-lock.json
	command -v npm > /dev/null || scripts/install-packages.sh nodejs npm
	@node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' || \
		{ echo "make: this needs Node 18 or later" >&2; exit 1; }
	mkdir -p $(@D)
	cp $^ $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

.PHONY: release
release: compiler
	$(CARGO) build --locked --release --package aiodb-cli

$(RUN)/unihan.tsv: scripts/unihan-records.sh
	scripts/install-packages.sh unicode-data bzip2
	mkdir -p $(RUN)
	scripts/unihan-records.sh > $@
	@echo "$$(wc -l < $@) records in $@"

# The store is made once: `release` comes first but does not make it anew.
$(RUN)/loaded: $(RUN)/unihan.tsv | release
	rm -rf $(RUN)/unihan
	$(AIODB) load $(RUN)/unihan $(RUN)/unihan.tsv
	touch $@
