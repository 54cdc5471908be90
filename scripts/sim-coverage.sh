#!/bin/bash
# Says which part of the engine's lines and branches the simulator runs through, by file.
#
#   scripts/sim-coverage.sh SEEDS
#
# Needs the component llvm-tools of the compiler that cargo uses. The pages with every line are in build/coverage/html.
set -euo pipefail

if [[ ! ${1:-} =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: $0 SEEDS" >&2
    exit 2
fi
cd "$(dirname "$0")/.."
out=$PWD/build/coverage
tools=$(dirname "$(rustc --print target-libdir)")/bin
if [ ! -x "$tools/llvm-cov" ]; then
    echo "sim-coverage: $tools/llvm-cov is missing: run  rustup component add llvm-tools" >&2
    exit 1
fi

rm -rf "$out/profiles"
mkdir -p "$out/profiles"
RUSTFLAGS="-C instrument-coverage" CARGO_PROFILE_SIM_LTO=off CARGO_PROFILE_SIM_CODEGEN_UNITS=16 \
    cargo build --locked --profile sim --package aiodb-sim --target-dir "$out/target"
simulator=$out/target/sim/aiodb-sim
LLVM_PROFILE_FILE=$out/profiles/%p.profraw "$simulator" --seeds "$1"
"$tools/llvm-profdata" merge --sparse "$out"/profiles/*.profraw --output "$out/merged.profdata"
cover() {
    "$tools/llvm-cov" "$@" "$simulator" --instr-profile "$out/merged.profdata" \
        --ignore-filename-regex '(/rustc/|/registry/|/tests\.rs|aiodb-sim/|aiodb/src/io/|aiodb/src/backup|aiodb/src/salvage)'
}
cover show --format html --output-dir "$out/html" > "$out/show.log"
cover report --show-region-summary=false --show-branch-summary=false
