#!/bin/sh
# Every kind of plan for every built-in network: streams, strips, tight streams, whole runs row by
# row, weights by stage, and what the planner makes of the smallest budget and of a quarter of the
# way from there to untiled (two stages, second passes, tiles). Each fingerprint is held against
# that of the untiled run with one thread and the same arithmetic of convolutions: own kernels of each
# instruction set, OpenBLAS under each of its core types.
#     sh tests/acceptance/verify_plans.sh [--conv CHOICE] build/rfexec [NETWORK ...]
# CHOICE is what `rfexec run --conv` takes; without it direct and openblas. KERNELS (of own kernels),
# CORES (of OpenBLAS), THREADS and SIZES in the environment narrow it. A plan that a network cannot have (exit
# code 3, 4) is counted apart.
set -u
choices="direct openblas"
if [ "$1" = --conv ]; then
    choices=$2
    shift 2
fi
program=$1
shift
. "$(dirname "$0")/arithmetics.sh"
[ $# -gt 0 ] || set -- $("$program" models | sed -n '2,/^$/s/ .*//p')
passed=0
failed=0
without=0

fingerprint() {
    env $(environment) "$program" run "$network" "synthetic:$size" --conv "$conv" "$@" 2>/dev/null |
        sed -n 's/^output .*hash \([0-9a-f]*\).*/\1/p'
}

# One plan, given by its options, with $threads threads.
compare() {
    env $(environment) "$program" plan "$network" "synthetic:$size" --conv "$conv" \
        --threads "$threads" "$@" >/dev/null 2>&1
    case $? in
        0) ;;
        3 | 4)
            without=$((without + 1))
            return
            ;;
    esac
    if [ -n "$untiled" ] && [ "$(fingerprint --threads "$threads" "$@")" = "$untiled" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$network $size $conv $set $threads threads $*: DIFFERENT"
    fi
}

# The number at a key of 'rfexec plan --json'.
planned() {
    key=$1
    shift
    env $(environment) "$program" plan "$network" "synthetic:$size" --conv "$conv" --threads 2 --json \
        --for-output none "$@" 2>/dev/null |
        sed -n "s/^ *\"$key\": \([0-9]*\).*/\1/p" | head -n 1
}

for network in "$@"; do
    sizes="225x193 385x513"
    [ "$network" != swinir_light ] || sizes="104x72 200x168" # multiples of its windows
    for size in ${SIZES:-$sizes}; do
        for arithmetic in $(arithmetics $choices); do
            conv=${arithmetic%:*}
            set=${arithmetic#*:}
            smallest=$(planned smallest_bytes --memory 1MiB)
            most=$(planned peak_bytes --untiled)
            untiled=$(fingerprint --untiled --threads 1)
            for threads in ${THREADS:-1 2}; do
                compare --bands 8
                compare --bands 5 --strips 3
                compare --bands 16 --tight
                compare --untiled --row-by-row
                compare --bands 32 --weights-by-stage
                compare --tiles 3x2
                compare --memory "$smallest"
                compare --memory $((smallest + (most - smallest) / 4))
            done
        done
        echo "$network $size: $passed passed, $failed failed, $without not possible so far"
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
