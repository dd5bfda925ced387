#!/bin/sh
# The demo, alone on a fresh Debian 12: installs what is missing, builds, then finds the defects of a
# 6000 x 5000 picture inside 64 MiB, proves the bits and shows what naive tiles would have done.
# Any step that fails ends it with an error. Needs about 1.6 GiB of memory, for the untiled proof only.
#
#     sh tools/demo.sh          that
#     sh tools/demo.sh norms    a second one, of norms over the whole picture (tools/demo/norms.sh)
set -eu
cd "$(dirname "$0")/.."

size=6000x5000
seed=${SEED:-42} # training used 1000000 and up
budget=64MiB
model=data/defect_net.onnx
int8=data/defect_net.int8.onnx # made of it by rfexec quantize
classes=data/defect_kinds.txt
out=build/demo
demo=${1:-defects}
case $demo in
defects) programs="rfx-make-inspection-image rfx-score-defects" ;;
norms) programs="rfx-make-micrograph rfx-compare-tiles" ;;
*)
    echo "usage: sh tools/demo.sh [defects | norms]" >&2
    exit 2
    ;;
esac
begin=$(date +%s)
step=0
trap 'code=$?; [ $code -eq 0 ] || echo "demo: step $step failed (exit code $code)" >&2' EXIT

say() {
    step=$((step + 1))
    printf '\n%d. %s\n' "$step" "$*"
}

fail() {
    echo "demo: $*" >&2
    exit 1
}

# The fingerprint of the output in what rfexec printed.
hash_of() {
    sed -n 's/^output .*hash \([0-9a-f]*\).*/\1/p' "$1"
}

# Runs a command with its output in a log that is shown when it fails.
quietly() {
    log=$1
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "failed: $*" >&2
        exit 1
    fi
}

say "Build rfexec (release; log in $out/build.log)"
sh tools/install_deps.sh
mkdir -p "$out"
quietly "$out/configure.log" cmake --preset release
# $programs is a list of words on purpose.
# shellcheck disable=SC2086
quietly "$out/build.log" cmake --build --preset release --parallel "$(nproc)" \
    --target rfexec $programs
echo "built in $(($(date +%s) - begin)) s"

if [ "$demo" = norms ]; then
    . tools/demo/norms.sh
    exit
fi

say "Make a picture of $size pixels of a metal surface with planted defects, seed $seed"
build/tools/demo/rfx-make-inspection-image "$size" "$out/part.png" --truth "$out/truth.csv" \
    --seed "$seed"
echo "$(($(wc -l <"$out/truth.csv") - 1)) defects planted: $out/part.png, $out/truth.csv"

say "Find them with $model inside $budget, the whole process counted"
build/rfexec run "$model" "$out/part.png" --memory "$budget" --threshold 0.5 --connect 8 \
    --classes "$classes" --regions "$out/defects.csv" >"$out/run.txt"
cat "$out/run.txt"
awk '$1 == "measured" { ok = $3 == "KiB" || ($3 == "MiB" && $2 <= 64) } END { exit !ok }' \
    "$out/run.txt" || fail "the peak of the process is above $budget"

say "Compare with the truth; green boxes: found, red: missed, yellow: false"
build/tools/demo/rfx-score-defects "$out/defects.csv" "$out/truth.csv" --require 0.9 --list 5 \
    --image "$out/part.png" --overlay "$out/overlay.png"
echo "picture with boxes: $out/overlay.png"

say "Find them again with the network of 8 bits, $int8"
build/rfexec run "$int8" "$out/part.png" --memory "$budget" --threshold 0.5 --connect 8 \
    --classes "$classes" --regions "$out/int8.csv" >"$out/int8.txt"
grep -E '^(plan|measured|output|regions)' "$out/int8.txt"
build/tools/demo/rfx-score-defects "$out/int8.csv" "$out/truth.csv" --require 0.9

say "Prove the bits against the untiled run, and show the seams of tiles without halos"
build/rfexec verify "$model" "$out/part.png" --memory "$budget" --naive >"$out/verify.txt" || {
    cat "$out/verify.txt"
    fail "the tiled and the untiled run differ, or could not be compared"
}
cat "$out/verify.txt"
grep -q '^naive .*wrong elements' "$out/verify.txt" || fail "the naive tiles were not run"
hash=$(hash_of "$out/run.txt")
[ -n "$hash" ] && [ "$hash" = "$(hash_of "$out/verify.txt")" ] ||
    fail "the maps in which the defects were found are not those that were verified"

say "Classify the same picture with mobilenet_v2 inside 256 MiB (seeded weights: no meaning)"
build/rfexec run mobilenet_v2 "$out/part.png" --memory 256MiB --top 5

printf '\nDemo done in %d s.\n' "$(($(date +%s) - begin))"
