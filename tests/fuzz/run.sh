#!/bin/sh
# Fuzzes with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, a target on each processor:
#
#     sh tests/fuzz/run.sh [--merge] [SECONDS] [TARGET ...]    # by default 60 s each of all targets
#     sh tests/fuzz/run.sh 20 png model
#
# Inputs that reach something new are kept in build-fuzz/corpus/TARGET, where the next run goes on;
# --merge adds the few small ones of them that reach most to tests/fuzz/corpus/TARGET (no fuzzing).
# Findings are kept in build-fuzz/artifacts, what a target printed in build-fuzz/logs. Installs clang
# where it may; else says so and exits with 77. Prints a table; the last line is "N passed, N failed".
set -eu
cd "$(dirname "$0")/../.."
at=tests/fuzz
build="build-fuzz"
merge=no
if [ "${1:-}" = --merge ]; then merge=yes && shift; fi
case ${1:-} in
'' | *[!0-9]*) seconds=60 ;;
*) seconds=$1 && shift ;;
esac
# Names of targets have no spaces.
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(ls $at/corpus)

sh tools/install_deps.sh clang libclang-rt-dev libomp-dev || exit 77
mkdir -p $build
if ! { cmake --preset fuzz && cmake --build --preset fuzz --parallel "$(nproc)"; } \
    >$build/build.log 2>&1; then
    tail -n 30 $build/build.log
    echo "the fuzz targets cannot be built: $build/build.log"
    exit 1
fi

# Leaks are looked for where the system lets a process be traced by another.
leaks=1
if ! ASAN_OPTIONS=detect_leaks=1 $build/$at/fuzz_synthetic -runs=1 >$build/leaks.log 2>&1; then
    ! grep -q 'LeakSanitizer has encountered a fatal error' $build/leaks.log || leaks=0
fi
export ASAN_OPTIONS="detect_leaks=$leaks:allocator_may_return_null=1" OMP_WAIT_POLICY=passive
mkdir -p $build/artifacts $build/logs

# Takes over inputs of at most 2 KiB that reach edges which the corpus of the tree does not: the
# $MOST_NEW that add most.
MOST_NEW=24
merge_target() {
    work=$(mktemp -d)
    mkdir "$work/grown" "$work/chosen"
    find "$build/corpus/$1" -type f -size -2049c -exec cp {} "$work/grown" \;
    cp "$at/corpus/$1"/* "$work/chosen"
    before=$(ls "$at/corpus/$1" | wc -l)
    "$build/$at/fuzz_$1" -set_cover_merge=1 -use_counters=0 "$work/chosen" "$work/grown" \
        >"$build/logs/$1.merge" 2>&1
    for file in $(ls -tr "$work/chosen"); do
        [ $(($(ls "$at/corpus/$1" | wc -l) - before)) -lt $MOST_NEW ] || break
        [ -e "$at/corpus/$1/$file" ] || cp "$work/chosen/$file" "$at/corpus/$1"
    done
    rm -r "$work"
    echo "$1: $before files, now $(ls "$at/corpus/$1" | wc -l)"
}

# Fuzzes one target in the background; its exit code is put beside its log.
start_target() {
    mkdir -p "$build/corpus/$1"
    {
        code=0
        "$build/$at/fuzz_$1" -max_total_time="$seconds" -max_len=4096 -timeout=120 \
            -rss_limit_mb=2048 -dict="$at/dict/$1.dict" -artifact_prefix="$build/artifacts/$1-" \
            -print_final_stats=1 "$build/corpus/$1" "$at/corpus/$1" >"$build/logs/$1.log" 2>&1 ||
            code=$?
        echo $code >"$build/logs/$1.code"
    } &
}

# Prints the row of a target that has ended; fails when it has a finding.
report_target() {
    log=$build/logs/$1.log
    code=$(cat "$build/logs/$1.code")
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    reached=$(grep -E ' cov: [0-9]+ ft: ' "$log" | tail -n 1 |
        sed -E 's/.* cov: ([0-9]+) ft: ([0-9]+) corp: ([0-9]+).*/\1 \2 \3/')
    findings=$([ "$code" -eq 0 ] && echo 0 || echo 1)
    total=$((total + ${runs:-0}))
    # $reached is a list of words on purpose.
    # shellcheck disable=SC2086
    printf '%-10s %12s %9s %7s %9s %7s %9s\n' "$1" "${runs:-?}" "${rate:-?}" ${reached:-? ? ?} \
        "$findings"
    [ "$code" -eq 0 ] || describe_finding "$1" "$log" >>$build/findings
    return "$code"
}

# What a target found, and where: a log that is kept elsewhere may have nothing but the last lines.
describe_finding() {
    echo "$1:"
    grep -E '^finding: |ERROR: |runtime error: ' "$2" || tail -n 3 "$2"
    grep -E '^ *#[0-4] ' "$2" | head -n 5 || true
    artifact=$(sed -n 's/.*Test unit written to //p' "$2")
    [ ! -f "$artifact" ] || base64 -w 0 "$artifact" | head -c 3000
    echo
}

report_started() {
    wait
    for target in $started; do
        if report_target "$target"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
    started='' n_started=0
}

passed=0
failed=0
total=0
rm -f $build/findings
[ $merge = yes ] || echo "$(date +%F), $seconds s a target, $(clang --version | head -n 1)"
[ $merge = yes ] || printf '%-10s %12s %9s %7s %9s %7s %9s\n' target executions a_second edges \
    features corpus findings
started='' n_started=0
for target in "$@"; do
    if [ $merge = yes ]; then
        merge_target "$target" && passed=$((passed + 1)) || failed=$((failed + 1))
        continue
    fi
    rm -f "$build/logs/$target.code"
    start_target "$target"
    started="$started $target" n_started=$((n_started + 1))
    [ $n_started -lt "$(nproc)" ] || report_started
done
[ $merge = yes ] || report_started
[ $merge = yes ] || echo "$total executions"
[ ! -f $build/findings ] || cat $build/findings
[ $leaks -eq 1 ] || echo "leaks were not looked for: this system does not let LeakSanitizer trace"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
