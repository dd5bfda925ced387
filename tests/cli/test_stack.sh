#!/bin/sh
# The program within a stack of 80 KiB (ulimit -s 80), of which the kernel takes some for words and
# environment: reading ONNX files and pictures, every way of computing convolutions, lists, parts, pages.
# usage: test_stack.sh PROGRAM SOURCE_DIR
set -eu
program=$1 model=$2/data/defect_net.onnx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$program" run fsrcnn synthetic:32x24 -o a.tif >told
"$program" run fsrcnn synthetic:32x24 -o a.png >told
printf 'a.tif\na.png\n' >list
ran=0
within() {
    env -i OMP_WAIT_POLICY=passive sh -c 'ulimit -s 80 && exec "$@"' sh "$program" "$@" >told 2>&1 || {
        echo "test_stack: exit code $? of: $* $(head -c 300 told)" >&2
        exit 1
    }
    ran=$((ran + 1))
}
within run "$model" a.tif -o o.tif -j 2
within run "$model" a.png -o o.zarr -j 2
within run "$model" --list list --out-dir out
within run "$model" synthetic:64x64 --conv winograd
within run "$model" synthetic:64x64 --conv openblas -j 2
within run mobilenet_v2 synthetic:64x64 --top 3
within run unet_instance synthetic:64x48 --memory 256MiB
within run fsrcnn synthetic:64x64 --report page.html
within run fsrcnn synthetic:64x64 --part 1/2 -o part.npy
within verify "$model" synthetic:64x64 --tiles 2x2
within plan "$model" --size 512x512 --memory 16MiB
within explain "$model" synthetic:64x64
within check "$model"
within info a.tif
within selftest
echo "test_stack: $ran commands passed"
