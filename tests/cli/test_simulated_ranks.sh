#!/bin/sh
# What is simulated of many ranks, held against 1 to 4 real ones.
# usage: test_simulated_ranks.sh PYTHON SOURCE PROGRAM MPI_PROGRAM MPIEXEC WORK_DIR MODEL=HxW...
# exit code 77: no processes can be started here
set -eu
python=$1 source=$2 program=$3 parallel=$4 mpiexec=$5 work=$6
shift 6
. "$(dirname "$0")/mpi_ranks.sh"
mkdir -p "$work"
cd "$work"
can_start || { echo "SKIPPED: '$mpiexec' starts no processes here: $(cat told)"; exit 77; }
"$python" "$source/tools/scripts/measure_parts.py" "$program" "$@" --folder files --ranks 1 2 3 4 \
    --mpi "$parallel" --mpiexec "$mpiexec" -- -j 1
