#!/bin/sh
# The long form of tests/cli/test_mpi.sh: one to four ranks, networks of all kinds at odd sizes, every
# kind of file, full disks, and jobs that lose a rank at random moments. About two minutes.
# usage: mpi.sh BUILD_DIR WORK_DIR [MPIEXEC]
set -eu
build=$(realpath "$1") work=$2 mpiexec=${3:-mpiexec}
program=$build/rfexec parallel=$build/rfexec-mpi
. "$(dirname "$0")/../cli/mpi_ranks.sh"
source=$(realpath "$(dirname "$0")/../..")
rm -rf "$work"
mkdir -p "$work"
cd "$work"
can_start || fail "'$mpiexec' does not start $parallel: $(cat told)"

for case in mobilenet_v2:97x113 mobilenet_v2:161x97 resnet50:65x97 resnet50:33x129 \
    unet_instance:33x21 unet_instance:53x38 yolov8n:96x64 yolov8n:160x128 unet:67x45 posenet:65x97 \
    deeplab_v3:65x97 mobilenet_v3_small:75x91 real_esrgan_compact:19x23 efficientnet_b0:65x65 \
    "$source/data/defect_net.onnx:203x187"; do
    for n in 1 2 3 4; do same $n "${case%:*}" "synthetic:${case##*:}"; done
    exchange=never
    same 3 "${case%:*}" "synthetic:${case##*:}"
    exchange=''
    echo "${case%:*} ${case##*:}: 1 to 4 ranks, rows exchanged and not, one hash"
done
for kind in tif png; do
    for n in 2 4; do
        kind=$kind same $n fsrcnn synthetic:83x61
        kind=$kind same $n "$source/data/defect_net.onnx" synthetic:203x187
    done
    kind=$kind same 3 fsrcnn synthetic:83x61 --bits 16 --range 0,1 2>/dev/null || fail "16 bits"
done
kind=npy
for n in 2 3 4; do
    same_exchanged feature_extraction.1,shrink.1,map.1,map.3,map.5,map.7,expand.1 $n fsrcnn synthetic:83x61
    same_exchanged model.4 $n yolov8n synthetic:160x128
    same_exchanged expand.1 $n fsrcnn synthetic:83x61 --bands 2 --strips 2
done
same 3 fsrcnn synthetic:83x61 --bands 2 --strips 3
same 3 fsrcnn synthetic:83x61 --tiles 3x2 --conv winograd --no-fuse
same 2 mobilenet_v2 synthetic:97x113 --keep features.6
"$program" run yolov8n synthetic:96x64 -j 1 -o - >whole.out 2>said
ranks 3 yolov8n synthetic:96x64 -o - >all.out 2>said
cmp whole.out all.out || fail "standard output: other bytes"
refused 3 'cannot be shared out' 2 vgg16 synthetic:32x32
refused 2 'from standard input' 2 fsrcnn -
echo "kinds of files and plans: the bytes of one process"

# a disk without room, where root may make one
mkdir small
if mount -t tmpfs -o size=100k none small 2>said; then
    trap 'umount "$work/small" 2>/dev/null || true; rm -rf "$sessions"' EXIT
    refused 5 'no room for its' 2 fsrcnn synthetic:64x64 -o small/no.npy
    refused 5 'small/no.tif: ' 2 fsrcnn synthetic:64x64 -o small/no.tif
    [ -z "$(ls -A small)" ] || fail "a full disk: $(ls -A small)"
    echo "a full disk: refused, nothing is left"
else
    echo "SKIPPED: a full disk, no tmpfs can be mounted: $(cat said)"
fi

kills() {
    for delay in 0.00 0.03 0.06 0.10 0.15 0.20 0.25 0.30 0.40 0.50; do
        for killed in 1 3; do
            other="fsrcnn synthetic:2000x1500 --memory 32MiB -o no.npy"
            begin "$killed" fsrcnn synthetic:2000x1500 --memory 32MiB -o no.npy
            wait_for_temporary
            sleep "$delay"
            kill_rank
            nothing_left
        done
    done
    echo "20 jobs that lost a rank left nothing"
}
kills
# with a named temporary, which is for those ranks to remove that are told to stop, as Open MPI does
if as_elsewhere; then kills; fi
echo "mpi: passed"
