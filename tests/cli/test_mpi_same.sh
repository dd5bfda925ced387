#!/bin/sh
# rfexec-mpi against one process, the short form of test_mpi.sh: norms one after the other, rows exchanged
# at several maps, and rows exchanged for a PNG file give the same bytes and hash.
# usage: test_mpi_same.sh PROGRAM MPI_PROGRAM MPIEXEC WORK_DIR; exit code 77: there is no MPI
set -eu
program=$1 parallel=$2 mpiexec=$3 work=$4
[ -n "$parallel" ] || { echo "SKIPPED: rfexec-mpi is not built, CMake found no MPI"; exit 77; }
. "$(dirname "$0")/mpi_ranks.sh"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
can_start || { echo "SKIPPED: '$mpiexec' starts no processes here: $(cat told)"; exit 77; }
same 2 unet_instance synthetic:33x21
same_exchanged shrink.1,map.3,expand.1 3 fsrcnn synthetic:83x61
kind=png same_exchanged map.5 2 fsrcnn synthetic:83x61
kind=json same 2 yolov8n synthetic:96x128
echo '{"outputs": [{"names": ["output0"], "axes": "v n", "values": ["box", "scores"]}],
    "decode": "centre"}' >head.json
kind=json same 3 yolov8n synthetic:96x128 --head head.json
kind=boxes.csv same 2 yolov8n synthetic:96x128 --head yolov8-obb
kind=geojson same 3 fsrcnn synthetic:83x61
kind=geojson same 2 fsrcnn synthetic:83x61 --threshold 0 --simplify 0.5
kind=points.csv same 3 fsrcnn synthetic:83x61 --threshold 0 --distance 2
kind=summary.json same 2 fsrcnn synthetic:83x61 --threshold 0
kind=text.csv same 3 ppocr_det synthetic:96x128 --threshold 0.5 --score 0
