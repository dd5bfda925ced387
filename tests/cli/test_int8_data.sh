#!/bin/sh
# data/defect_net.int8.onnx is what its script makes, and finds what the float32 network finds.
# usage: test_int8_data.sh BUILD_DIR SOURCE_DIR WORK_DIR
set -eu
build=$1 source=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"
sh "$source/tools/scripts/quantise_defect_net.sh" "$build" made.onnx >log
cmp made.onnx "$source/data/defect_net.int8.onnx"
"$build/tools/demo/rfx-make-inspection-image" 1500x2500 part.png --truth truth.csv --seed 42 >log
for net in defect_net defect_net.int8; do
    "$build/rfexec" run "$source/data/$net.onnx" part.png --memory 32MiB --threshold 0.5 \
        --connect 8 --classes "$source/data/defect_kinds.txt" --regions "$net.csv" >log
    "$build/tools/demo/rfx-score-defects" "$net.csv" truth.csv --require 1 >"$net.txt"
    awk '$1 == "all" { exit !($2 > 8 && $2 == $3 && $5 == 0) }' "$net.txt" || {
        cat "$net.txt"
        exit 1
    }
done
