#!/bin/sh
# One run as several processes: the parts of an output side by side, then put together.
#
#   sh tools/scripts/run_parts.sh PARTS PROCESSES MODEL INPUT OUT.npy [plan options of rfexec run]
#
# Networks with global pools and norms take a round for each, whose states are added up in between.
# Parts lie in OUT.npy.parts. Started again after a stop it makes only what is missing. RFEXEC names
# the program; each process should have its share of the threads (-j) and of the memory.
# slurm_parts.sh does the same with a cluster's arrays of jobs.
set -eu
[ $# -ge 5 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
parts=$1 processes=$2 model=$3 input=$4 out=$5
shift 5
rfexec=${RFEXEC:-rfexec}
folder=$out.parts
mkdir -p "$folder"
"$rfexec" plan "$model" "$input" --parts "$parts" --json "$@" >"$folder/plan.json"
rounds=$(sed -n 's/^ *"rounds": \([0-9]*\).*/\1/p' "$folder/plan.json")
by_merge=$(sed -n 's/^ *"last_by_merge": \([a-z]*\).*/\1/p' "$folder/plan.json")

# NAME KIND [OPTIONS]: the files NAME1.KIND, NAME2.KIND, ... made side by side, and put into $merged.
part_by_part() {
    name=$folder/$1 kind=$2
    shift 2
    seq "$parts" | xargs -P "$processes" -I{} "$rfexec" run "$model" "$input" --part "{}/$parts" \
        -o "$name{}.$kind" "$@" >&2
    for i in $(seq "$parts"); do set -- "$@" "$name$i.$kind"; done
    shift $(($# - parts))
    "$rfexec" merge "$@" -o "$merged"
}

round=1 states=
while [ "$round" -lt "${rounds:-1}" ]; do
    merged=$folder/round$round.states
    [ -e "$merged" ] ||
        part_by_part "round$round.part" states ${states:+--states "$states"} "$@" >&2
    states=$merged round=$((round + 1))
done
merged=$out kind=npy
[ "$by_merge" != true ] || kind=states
part_by_part part "$kind" ${states:+--states "$states"} "$@"
