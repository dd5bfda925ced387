# For test_mpi.sh and tests/acceptance/mpi.sh, which set program, parallel and mpiexec.
# More ranks than processors, and root in a container, for Open MPI 4 and 5.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_base_warn_component_unused=0
# Jobs beside each other remove the folder of their sessions under each other: each test has its own,
# which has a short name, as sockets lie in it.
sessions=$(mktemp -d /tmp/mpi.XXXXXX)
trap 'rm -rf "$sessions"' EXIT
export OMPI_MCA_orte_tmpdir_base="$sessions" PRTE_MCA_prte_tmpdir_base="$sessions"
# words of one more rank, the largest file that it may write in 512 bytes, and what starts it
other='' limit='' through=''
# maps whose rows ranks exchange
exchange=''

# The last line says what failed; before it stands what the last job printed.
fail() {
    [ ! -s said ] || { echo "stderr of the last job:" && tail -n 20 said; } >&2
    [ ! -s told ] || { echo "its output:" && tail -n 40 told; } >&2
    echo "FAILED $(basename "$0"): $*" >&2
    exit 1
}

# starts $1 ranks with the words that follow, and one more that writes its number into `pid`
ranks() {
    n=$1
    shift
    set -- "$@" -j 1 ${exchange:+--exchange "$exchange"}
    if [ -z "$other" ]; then
        "$mpiexec" -n "$n" "$parallel" "$@"
    else
        "$mpiexec" -n "$n" "$parallel" "$@" : -n 1 sh -c "echo \$\$ >pid
            [ -z '$limit' ] || ulimit -f $limit
            exec $through '$parallel' $other -j 1"
    fi
}

can_start() {
    "$mpiexec" -n 2 "$parallel" --version >told 2>&1 && [ "$(grep -c rfexec-mpi told)" = 2 ]
}

# $1 ranks give what one process gives; $kind: end of the file's name
same() {
    n=$1
    shift
    rm -f whole.* all.*
    "$program" run "$@" -j 1 -o "whole.${kind:=npy}" >one 2>said || fail "$*: $(cat said)"
    ranks "$n" "$@" -o "all.$kind" >told 2>said || fail "$n ranks, $*: $(cat said)"
    grep '^output ' one >wanted || fail "$*: no outputs"
    grep '^output ' told | cmp -s - wanted || fail "$n ranks, $*: $(cat told), not $(cat wanted)"
    [ -z "$(find . -name '.rfexec-*')" ] || fail "$n ranks, $*: a temporary is left"
    for file in whole*."$kind"; do
        cmp "$file" "all${file#whole}" || fail "$n ranks, $*: other bytes than one process"
    done
    unset kind
}

# the same with rows exchanged at the maps $1
same_exchanged() {
    exchange=$1
    shift
    same "$@"
    named=$(echo "$exchange" | sed 's/,/, /g') maps=$(($(echo "$exchange" | tr -cd , | wc -c) + 1))
    grep -q -e "^exchange   rows of $named: " -e "^exchange   rows of $maps maps, from " told ||
        fail "no rows of $exchange were exchanged: $(cat told)"
    exchange=''
}

# starts the further rank as if it were on another machine; false: nobody may here
as_elsewhere() {
    printf 'hostname elsewhere\nexec "$@"\n' >elsewhere.sh
    through="unshare -u sh elsewhere.sh"
    $through true 2>said || { echo "SKIPPED: another machine's name: $(cat said)"; through=''; return 1; }
}

nothing_left() {
    [ ! -e no.npy ] && [ -z "$(find . -name '.rfexec-*')" ] || fail "files are left: $(ls -A)"
}

# expects exit code $1 and words $2 of $3 ranks, and no file; nobody has to be given time to end
refused() {
    code=$1 words=$2
    shift 2
    set +e
    (
        export OMPI_MCA_odls_base_sigkill_timeout=0
        ranks "$@" >told 2>said
    )
    got=$?
    set -e
    [ "$got" = "$code" ] || fail "exit code $got, not $code: $* $(cat told said)"
    grep -q -- "$words" said || fail "no '$words' in: $(cat said)"
    nothing_left
}

begin() {
    rm -f pid
    ranks "$@" >told 2>said &
    job=$!
}

# until the last rank has the temporary open, which has a name or none; in $1 or here
wait_for_temporary() {
    for _ in $(seq 3000); do
        sleep 0.02
        # shellcheck disable=SC2012
        [ ! -s pid ] || ! ls -l "/proc/$(cat pid)/fd" 2>/dev/null |
            grep -q -e "${1:-$PWD}/#[0-9]* (deleted)" -e '/\.rfexec-' || return 0
        kill -0 "$job" 2>/dev/null || fail "the job has ended before it had a temporary"
    done
    fail "no temporary within a minute"
}

# until the job that was begun has said a line
wait_for_line() {
    for _ in $(seq 1200); do
        grep -q -- "$1" said && return 0
        kill -0 "$job" 2>/dev/null || fail "the job has ended without the line '$1'"
        sleep 0.1
    done
    fail "no line '$1' within two minutes"
}

# kills the further rank of the job that was begun
kill_rank() {
    kill -KILL "$(cat pid)" 2>/dev/null || fail "the rank had ended before it was killed"
    if wait "$job"; then fail "a killed rank, and exit code 0"; fi
}
