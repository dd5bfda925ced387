#!/bin/sh
# One run as arrays of jobs of a Slurm cluster: run_parts.sh where processes are jobs.
#
#   sh tools/scripts/slurm_parts.sh PARTS MODEL INPUT OUT.npy [plan options of rfexec run]
#
# An array of PARTS jobs for every round, and a job that merges when all of them are well; it prints
# the number of the last, which writes OUT.npy. Files lie in OUT.npy.parts, in a folder that all
# machines see; submitted again, parts that are there are not made again. SLURM_OPTIONS is given to
# sbatch, such as "--mem=1G --cpus-per-task=2 --time=60"; RFEXEC names the program.
set -eu
rfexec=${RFEXEC:-rfexec}
case ${1:-} in
    part) # PARTS NAME KIND, then what `run` takes: one job of an array
        parts=$2 out=$3$SLURM_ARRAY_TASK_ID.$4
        shift 4
        exec "$rfexec" run "$@" --part "$SLURM_ARRAY_TASK_ID/$parts" -o "$out"
        ;;
    merge) # PARTS NAME KIND OUT
        parts=$2 name=$3 kind=$4 out=$5
        shift 5
        for i in $(seq "$parts"); do set -- "$@" "$name$i.$kind"; done
        exec "$rfexec" merge "$@" -o "$out"
        ;;
esac
[ $# -ge 4 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
parts=$1 model=$2 input=$3 out=$4
shift 4
folder=$out.parts
mkdir -p "$folder"
"$rfexec" plan "$model" "$input" --parts "$parts" --json "$@" >"$folder/plan.json"
rounds=$(sed -n 's/^ *"rounds": \([0-9]*\).*/\1/p' "$folder/plan.json")
by_merge=$(sed -n 's/^ *"last_by_merge": \([a-z]*\).*/\1/p' "$folder/plan.json")

# [SBATCH OPTIONS --] ARGUMENTS: submits this script once $before is done; $before is that job then.
submit() {
    # shellcheck disable=SC2086
    before=$(sbatch --parsable --kill-on-invalid-dep=yes --output "$folder/%x.%j.txt" \
        ${before:+--dependency "afterok:$before"} ${SLURM_OPTIONS:-} "$@")
    before=${before%%;*}
}

round=1 states='' before=''
while [ "$round" -lt "${rounds:-1}" ]; do
    name=$folder/round$round.part
    submit --array "1-$parts" "$0" part "$parts" "$name" states "$model" "$input" \
        ${states:+--states "$states"} "$@"
    submit "$0" merge "$parts" "$name" states "$folder/round$round.states"
    states=$folder/round$round.states round=$((round + 1))
done
kind=npy
[ "$by_merge" != true ] || kind=states
submit --array "1-$parts" "$0" part "$parts" "$folder/part" "$kind" "$model" "$input" \
    ${states:+--states "$states"} "$@"
submit "$0" merge "$parts" "$folder/part" "$kind" "$out"
echo "$before"
