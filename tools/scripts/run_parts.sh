#!/bin/sh
# One run as several processes: the parts of an output side by side, then put together.
#
#   sh tools/scripts/run_parts.sh PARTS PROCESSES MODEL INPUT OUT [options of rfexec run] [-- options of rfexec merge]
#
# PARTS parts are made, PROCESSES of them at a time. Networks with global pools and norms take a round
# for each, whose states are added up in between. Parts lie in the folder OUT.parts. Started again after
# a stop it makes only what is missing or damaged. OUT is what rfexec merge writes: .npy, .tif, .png or
# .zarr. RFEXEC names the program; each process should have its share of the threads (-j) and of the
# memory. The exit code is rfexec's: that of the first part that failed, or of merge.
# slurm_parts.sh does the same with a cluster's arrays of jobs.
set -eu
[ $# -ge 5 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
parts=$1 processes=$2 model=$3 input=$4 out=$5
shift 5
for number in "$parts" "$processes"; do
    case $number in
        '' | *[!0-9]* | 0*) echo "run_parts.sh: '$number' is not a number of parts or processes" >&2; exit 2 ;;
    esac
done
if [ "$input" = - ]; then
    echo "run_parts.sh: several processes cannot read the image from standard input: name a file" >&2
    exit 2
fi
rfexec=${RFEXEC:-rfexec}
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

# Makes every PROCESSES-th part from part $1 on: $2: where parts lie, $3: their ending, then what `run`
# takes. Stops at the first that fails, with its code.
work() {
    number=$1 name=$2 kind=$3
    shift 3
    while [ "$number" -le "$parts" ]; do
        "$rfexec" run "$@" --part "$number/$parts" -o "$name$number.$kind" >&2 || return $?
        number=$((number + processes))
    done
}

# $1: where parts lie, $2: their ending, then what `run` takes: all parts, side by side.
make_parts() {
    pids= worker=1
    while [ "$worker" -le "$processes" ]; do
        work "$worker" "$@" &
        pids="$pids $!" worker=$((worker + 1))
    done
    code=0
    for pid in $pids; do
        got=0
        wait "$pid" || got=$?
        [ "$code" -ne 0 ] || code=$got
    done
    [ "$code" -eq 0 ] || exit "$code"
}

# $1: where parts lie, $2: their ending, $3: what they make, then options of merge.
merge_parts() {
    name=$1 kind=$2 merged=$3 number=1
    shift 3
    while [ "$number" -le "$parts" ]; do
        set -- "$@" "$name$number.$kind"
        number=$((number + 1))
    done
    "$rfexec" merge "$@" -o "$merged" || exit $?
}

eval '"$rfexec" plan "$model" "$input" --parts "$parts" --json '"$run_words" >"$folder/plan.json" || exit $?
rounds=$(sed -n 's/^ *"rounds": \([0-9]*\).*/\1/p' "$folder/plan.json")
by_merge=$(sed -n 's/^ *"last_by_merge": \([a-z]*\).*/\1/p' "$folder/plan.json")

# $1: where parts lie, $2: their ending: makes the parts of a round, or of the output.
make() { eval 'make_parts "$1" "$2" "$model" "$input" ${states:+--states "$states"}'"$run_words"; }

round=1 states=
while [ "$round" -lt "${rounds:-1}" ]; do
    name=$folder/round$round.part
    if [ ! -e "$folder/round$round.states" ]; then
        make "$name" states
        merge_parts "$name" states "$folder/round$round.states" >&2
    fi
    states=$folder/round$round.states round=$((round + 1))
done
kind=npy
[ "$by_merge" != true ] || kind=states
make "$folder/part" "$kind"
eval 'merge_parts "$folder/part" "$kind" "$out" '"$merge_words"
