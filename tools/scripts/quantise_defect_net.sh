#!/bin/sh
# Makes data/defect_net.int8.onnx of data/defect_net.onnx: ranges from six made pictures.
#   sh tools/scripts/quantise_defect_net.sh BUILD_DIR FILE.onnx
# The file is the same on every machine and with every plan.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/pictures"
for seed in 1000001 1000002 1000003 1000004 1000005 1000006; do # the demo's picture has seed 42
    "$build/tools/demo/rfx-make-inspection-image" 1024x1024 "$work/pictures/$seed.png" \
        --truth "$work/truth.csv" --seed "$seed" >"$work/log"
done
"$build/rfexec" quantize "$top/data/defect_net.onnx" --images "$work/pictures" --memory 64MiB -o "$2"
