#!/bin/sh
# One run as arrays of jobs of a Slurm cluster: run_parts.sh where processes are jobs.
#
#   sh tools/scripts/slurm_parts.sh PARTS MODEL INPUT OUT [options of rfexec run] [-- options of rfexec merge]
#
# An array of PARTS jobs for every round (several arrays of up to 1000, the usual limit of a cluster; with
# SLURM_ARRAY_MOST of up to so many), and a job that merges when all of them are well; it prints
# the number of the last, which writes OUT. Files lie in OUT.parts, in a folder that all
# machines see; submitted again, parts that are there are not made again. SLURM_OPTIONS is given to
# sbatch, such as "--mem=1G --cpus-per-task=2 --time=60"; RFEXEC names the program.
set -eu
rfexec=${RFEXEC:-rfexec}
case ${1:-} in
    part) # PARTS BEFORE NAME KIND, then what `run` takes: one job of an array, behind so many parts
        number=$(($3 + SLURM_ARRAY_TASK_ID)) parts=$2 name=$4 kind=$5
        shift 5
        exec "$rfexec" run "$@" --part "$number/$parts" -o "$name$number.$kind"
        ;;
    merge) # PARTS NAME KIND OUT, then options of merge
        parts=$2 name=$3 kind=$4 out=$5
        shift 5
        for i in $(seq "$parts"); do set -- "$@" "$name$i.$kind"; done
        exec "$rfexec" merge "$@" -o "$out"
        ;;
esac
[ $# -ge 4 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v sbatch >/dev/null || { echo "slurm_parts.sh: there is no sbatch here" >&2; exit 5; }
parts=$1 model=$2 input=$3 out=$4
shift 4
case $parts in
    '' | *[!0-9]* | 0*) echo "slurm_parts.sh: '$parts' is not a number of parts" >&2; exit 2 ;;
esac
folder=$out.parts
mkdir -p -- "$folder" || exit 5

# A word as the shell reads it again.
quote() { printf '%s\n' "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"; }

# Options of run, and those of merge behind "--", as words for eval.
run_words='' merge_words='' of=run
for word in "$@"; do
    case $of:$word in
        run:--) of=merge ;;
        run:*) run_words="$run_words $(quote "$word")" ;;
        merge:*) merge_words="$merge_words $(quote "$word")" ;;
    esac
done
eval '"$rfexec" plan "$model" "$input" --parts "$parts" --json '"$run_words" >"$folder/plan.json" || exit $?
rounds=$(sed -n 's/^ *"rounds": \([0-9]*\).*/\1/p' "$folder/plan.json")
by_merge=$(sed -n 's/^ *"last_by_merge": \([a-z]*\).*/\1/p' "$folder/plan.json")

# [SBATCH OPTIONS --] ARGUMENTS: submits this script once the jobs of $before are done; $job is its number.
submit() {
    # shellcheck disable=SC2086
    job=$(sbatch --parsable --kill-on-invalid-dep=yes --output "$folder/%x.%j.txt" \
        ${before:+--dependency "afterok:$before"} ${SLURM_OPTIONS:-} "$@") || exit $?
    job=${job%%;*}
}

# $1: where parts lie, $2: their ending: arrays of jobs for all parts; $before are these jobs then.
submit_parts() {
    first=0 jobs=''
    while [ "$first" -lt "$parts" ]; do
        count=$((parts - first))
        [ "$count" -le "$most" ] || count=$most
        eval 'submit --array "1-$count" "$0" part "$parts" "$first" "$1" "$2" "$model" "$input" \
            ${states:+--states "$states"}'"$run_words"
        jobs=${jobs:+$jobs:}$job first=$((first + count))
    done
    before=$jobs
}

most=${SLURM_ARRAY_MOST:-1000}
round=1 states='' before=''
while [ "$round" -lt "${rounds:-1}" ]; do
    name=$folder/round$round.part
    submit_parts "$name" states
    submit "$0" merge "$parts" "$name" states "$folder/round$round.states"
    before=$job states=$folder/round$round.states round=$((round + 1))
done
kind=npy
[ "$by_merge" != true ] || kind=states
submit_parts "$folder/part" "$kind"
eval 'submit "$0" merge "$parts" "$folder/part" "$kind" "$out"'"$merge_words"
echo "$job"
