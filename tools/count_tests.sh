# Shell functions for scripts that run several test programs and end with one line of counts.
# shellcheck shell=sh
passed=0
failed=0
# What failed, said again at the end, where a long log may be cut off; a script that is counted by
# another one leaves that to it.
if [ -n "${RFX_FAILURES:-}" ]; then
    own_failures=
else
    own_failures=$(mktemp)
    export RFX_FAILURES="$own_failures"
    trap 'rm -f "$own_failures"' EXIT
fi

# keep_failure NAME LOG: the lines of a log that tell of a failure, and its end.
keep_failure() {
    {
        echo "-- $1"
        grep -E 'FAIL|Failed|MISSED|\*\*\*|error:|[Ff]inding|Sanitizer' "$2" | tail -n 20
        tell_failed_tests "$2"
        echo "   its last lines:"
        tail -n 12 "$2"
    } | cut -c 1-300 >>"$RFX_FAILURES"
}

# tell_failed_tests LOG: of every test that ctest calls failed, the last lines that it printed.
tell_failed_tests() {
    awk '
        function tell(i) {
            for (i = n > 12 ? n - 11 : 1; i <= n; i++) print "   " lines[i]
            n = 0
        }
        / Test +#[0-9]+: |^ +Start +[0-9]+: |tests passed, / { tell(); failed = 0 }
        / Test +#[0-9]+: .*\*\*\*/ { failed = 1 }
        failed && $0 != "" { lines[++n] = $0 }
        END { tell() }' "$1"
}

# run_counted NAME COMMAND ...: runs the command and adds its counts: those of a last line "N passed,
# N failed", or of ctest's summary, or else the command itself as one test. Exit code 77: skipped, not
# counted. Returns the exit code.
run_counted() {
    name=$1
    shift
    log=$(mktemp)
    began=$(date +%s)
    known=$(wc -c <"$RFX_FAILURES")
    { "$@" 2>&1; echo $? >"$log.code"; } | tee "$log"
    code=$(cat "$log.code")
    # ctest: "97% tests passed, 1 tests failed out of 34"; newer ones: "100% tests passed out of 34"
    summary=$(grep -E '^[0-9]+% tests passed.* out of [0-9]+' "$log" | tail -n 1)
    line=$(tail -n 1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed$' || true)
    if [ -n "$line" ]; then # of a script that has counted for itself
        good=${line%% *}
        bad=$(echo "$line" | sed -E 's/.*, ([0-9]+) failed/\1/')
    elif [ -n "$summary" ]; then
        total=$(echo "$summary" | sed -E 's/.* out of ([0-9]+).*/\1/')
        bad=$(echo "$summary" | sed -nE 's/.*, ([0-9]+) tests? failed.*/\1/p')
        bad=${bad:-0}
        good=$((total - bad))
    elif [ "$code" -eq 0 ]; then
        good=1 bad=0
    else
        good=0 bad=1
    fi
    if [ "$code" -eq 77 ]; then
        echo "== $name: skipped"
        rm -f "$log" "$log.code"
        return 77
    fi
    [ "$code" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
    if [ "$bad" -gt 0 ] && [ "$(wc -c <"$RFX_FAILURES")" -eq "$known" ]; then
        keep_failure "$name" "$log"
    fi
    rm -f "$log" "$log.code"
    passed=$((passed + good))
    failed=$((failed + bad))
    took="$(($(date +%s) - began)) s"
    if [ "$bad" -eq 0 ]; then
        echo "== $name: $good passed, $took"
    else
        echo "== $name: $bad FAILED, $took"
    fi
    return "$code"
}

# start_beside COMMAND ...: runs a command of one thread beside what follows. finish_beside NAME waits
# for it, prints what it printed and counts it as run_counted does.
start_beside() {
    beside=$(mktemp)
    { code=0 && "$@" >"$beside" 2>&1 || code=$?; echo $code >"$beside.code"; } &
}

finish_beside() {
    wait
    run_counted "$1" sh -c "cat $beside; exit $(cat "$beside.code")" || true
    rm -f "$beside" "$beside.code"
}

# The last line; fails when a test failed or none was run.
report_counts() {
    if [ -n "$own_failures" ] && [ -s "$own_failures" ]; then
        echo "== What failed"
        cat "$own_failures"
    fi
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
