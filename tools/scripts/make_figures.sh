#!/bin/sh
# Draws the figures of paper 003 that docs/reproduction.md compares (1, 2, 8a to 8d, 9a, 9b) and the
# placement of docs/memory_placement.md, and what a budget buys (docs/notes/tradeoff.md).
#
#   tools/scripts/make_figures.sh [RFEXEC [DIRECTORY]]
#
# RFEXEC is the built program (default: build/rfexec, built when it is not there), DIRECTORY gets the
# pictures (default: docs/figures). Needs gnuplot. Nothing is run through a network: well
# under a minute.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
rfexec=${1:-$root/build/rfexec}
out=${2:-$root/docs/figures}
networks="vgg16 resnet18 resnet50 mobilenet_v2"

if [ ! -x "$rfexec" ]; then
    if [ $# -gt 0 ]; then
        echo "make_figures.sh: '$rfexec' is not a program" >&2
        exit 2
    fi
    cmake -S "$root" -B "$root/build" -DRFX_BUILD_TESTS=OFF -DRFX_BUILD_DEMO=OFF >&2
    cmake --build "$root/build" --target rfexec -j "$(nproc)" >&2
fi
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The value of a key that occurs once in a JSON document of rfexec.
json_number() {
    sed -n 's/^ *"'"$1"'": \([0-9]*\),*$/\1/p' "$2"
}

# Figure 1: activations over parameters at several sizes.
figure_1() {
    for network in $networks; do
        for size in 128 224 384 512 640 768 896 1024; do
            "$rfexec" curve "$network" --size "${size}x$size" --baseline "$1" --json >"$work/c.json"
            peak=$(awk '/"untiled"/ { on = 1 } on && /"peak_bytes"/ { print; exit }' "$work/c.json" |
                tr -dc '0-9')
            weights=$(json_number weights_bytes "$work/c.json")
            awk "BEGIN { printf \"$network,$size,%.4f\\n\", ($peak - $weights) / $weights }"
        done
    done >"$work/figure_1.csv"
    "$rfexec" chart "$work/figure_1.csv" -o "$out/figure_1.svg" \
        --title "Figure 1: memory of activations over memory of parameters" \
        --subtitle "untiled, $1 baseline: batch norm and activation make tensors of their own" \
        --x-label "image height and width [px]" --y-label "peak activations / parameters" --log-y
}

# Figures 8c and 8d: the eight aggregation points L1 ... L8 of the toy networks, named in the paper.
toy_points() {
    awk -F, -v n="$1" -v mode="$2" '
        BEGIN {
            split("module1.block1 module1 maxpool1 module2.block1 module2 maxpool2 module3.block1" \
                " module3", names, " ")
            for (i = 1; i <= 8; ++i) place[names[i]] = i
        }
        {
            gsub(/"/, "")
            # the model name has commas of its own: count from the end
            kind = $(NF - 13); split_name = $(NF - 11)
            if (kind != "curve" || !(split_name in place)) next
            label = "L" place[split_name]
            if (mode == "tile" && (label == "L2" || label == "L5")) {
                label = "L" place[split_name] ", L" place[split_name] + 1
            } else if (mode == "tile" && (label == "L3" || label == "L6")) {
                label = ""
            }
            # those of n = 4 would lie on those of n = 3
            if (mode == "memory" && n == 4 && label ~ /L[123]/) label = ""
            if (mode == "tile") print "n = " n "," $NF "," $(NF - 8) ",\"" label "\""
            else print "n = " n "," $(NF - 8) "," $(NF - 7) "," label
        }'
}

figure_8() {
    for n in 3 4; do
        toy="toy:m=3,b=2,n=$n,cst=32"
        letter=a
        [ "$n" = 3 ] || letter=b
        "$rfexec" analyze "$toy" --size 224x224 --tiles 4x4 --baseline "$1" \
            --plot "$out/figure_8$letter.svg" >/dev/null
        "$rfexec" curve "$toy" --size 224x224 --tiles 4x4 --baseline "$1" --csv >"$work/toy.csv"
        toy_points "$n" tile <"$work/toy.csv" >>"$work/figure_8c.csv"
        toy_points "$n" memory <"$work/toy.csv" >>"$work/figure_8d.csv"
    done
    "$rfexec" chart "$work/figure_8c.csv" -o "$out/figure_8c.svg" \
        --title "Figure 8c: tile size and computation" \
        --subtitle "toy:m=3,b=2,n,cst=32 at 224x224, 4x4 tiles" \
        --x-label "height and width of the largest tile, halo included [px]" \
        --y-label "MACs, tiled / untiled"
    "$rfexec" chart "$work/figure_8d.csv" -o "$out/figure_8d.svg" \
        --title "Figure 8d: computation and memory" \
        --subtitle "toy:m=3,b=2,n,cst=32 at 224x224, 4x4 tiles, $1 baseline" \
        --x-label "MACs, tiled / untiled" --y-label "peak memory, untiled / tiled"
}

figure_1 eager
"$rfexec" analyze table1 --size 32x32 --baseline fused --plot "$out/figure_2.svg" >/dev/null
figure_8 eager
for size in 224 1024; do
    letter=a
    [ "$size" = 224 ] || letter=b
    for baseline in eager fused; do
        suffix=
        [ "$baseline" = eager ] || suffix=_fused
        # $networks is a list of words on purpose.
        # shellcheck disable=SC2086
        "$rfexec" curve $networks --size "${size}x$size" --tiles 16 --baseline "$baseline" --csv \
            -o "$out/figure_9$letter$suffix.svg" >/dev/null
    done
done
"$rfexec" memory mobilenet_v2 --size 224x224 --plot "$out/placement_mobilenet_v2.svg" >/dev/null
"$rfexec" curve mobilenet_v2 --size 4096x4096 --pareto -o "$out/budget_mobilenet_v2.svg" >/dev/null
ls "$out" >&2
