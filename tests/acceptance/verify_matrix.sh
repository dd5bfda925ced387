#!/bin/sh
# The long exactness matrix, too slow for every run: networks x what computes convolutions (own kernels
# of each instruction set, OpenBLAS under each of its core types) x threads x grids at 1537 x 2049. Each
# tiled run's fingerprint is held against the untiled run of the same network and arithmetic with one
# thread. Prints one line per case and a count.
#     sh tests/acceptance/verify_matrix.sh [--conv CHOICE] build/rfexec [NETWORK:SPLIT ...]
# CHOICE is what `rfexec run --conv` takes; without it direct and openblas. KERNELS (of own kernels),
# CORES (of OpenBLAS), THREADS, TILES and SIZE in the environment narrow it.
set -u
choices="direct openblas"
if [ "$1" = --conv ]; then
    choices=$2
    shift 2
fi
program=$1
shift
top=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || set -- mobilenet_v2:features.6 resnet18:layer2.1 resnet50:layer2.3 \
    vgg16:features.16 "$top/data/defect_net.onnx:defects"
passed=0
failed=0

# The fingerprint of a run of $network by $conv under $set with the options given.
fingerprint() {
    env $(environment) "$program" run "$network" "synthetic:${SIZE:-1537x2049}" --conv "$conv" "$@" |
        sed -n 's/^output .*hash \([0-9a-f]*\).*/\1/p'
}

. "$top/tests/acceptance/arithmetics.sh"

for case in "$@"; do
    network=${case%:*}
    split=${case##*:}
    for arithmetic in $(arithmetics $choices); do
        conv=${arithmetic%:*}
        set=${arithmetic#*:}
        untiled=$(fingerprint --untiled --threads 1)
        for threads in ${THREADS:-1 2}; do
            for tiles in ${TILES:-4x4 1x7 5x3 16x16}; do
                tiled=$(fingerprint --tiles $tiles --split "$split" --threads "$threads")
                if [ -n "$tiled" ] && [ "$tiled" = "$untiled" ]; then
                    word=identical
                    passed=$((passed + 1))
                else
                    word=DIFFERENT
                    failed=$((failed + 1))
                fi
                echo "$(basename "$network") $split $conv $set $threads threads $tiles: $word $tiled"
            done
        done
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
