#!/bin/sh
# Where outputs go, for every command that writes a file: test_output_targets.sh RFEXEC
# WORK_DIRECTORY. Special files stay what they are, links are followed, nobody else's file is
# touched, and "-" is standard output.
set -eu
rfexec=$1
rm -rf "$2"
mkdir -p "$2"
cd "$2"
failures=0

fail() {
    echo "test_output_targets: $*" >&2
    failures=$((failures + 1))
}

printf 'id,lower,upper,size\na,0,2,4\nb,1,3,3\n' >problem.csv
printf 'one,1,2\none,2,3\n' >lines.csv

# command FILE: runs one of the writing commands on it; $way says which.
command() {
    case $way in
        alloc) "$rfexec" alloc problem.csv -o "$1" ;;
        alloc_plot) "$rfexec" alloc problem.csv --plot "$1" ;;
        export) "$rfexec" export table1 -o "$1" ;;
        curve) "$rfexec" curve toy --size 64x64 -o "$1" ;;
        pareto) "$rfexec" curve toy --size 64x64 --pareto -o "$1" ;;
        analyze) "$rfexec" analyze table1 --plot "$1" ;;
        memory) "$rfexec" memory table1 --plot "$1" ;;
        chart) "$rfexec" chart lines.csv -o "$1" ;;
        plan) "$rfexec" plan fsrcnn --size 64x64 -o "$1" ;;
        npy) "$rfexec" run fsrcnn synthetic:48x40 --bands 8 -o "$1" ;;
        report) "$rfexec" run fsrcnn synthetic:48x40 --report "$1" ;;
        table) echo synthetic:48x40 | "$rfexec" run fsrcnn --list - --out-dir results --as summary.csv --table "$1" ;;
        overlay) "$rfexec" run fsrcnn synthetic:48x40 --bands 8 --overlay "$1" ;;
    esac
}

# Ends of names that a command takes.
ending() {
    case $way in
        npy) echo .npy ;;
        report) echo .html ;;
        overlay) echo .png ;;
        export) echo .onnx ;;
        plan) echo .json ;;
        alloc | table) echo .csv ;;
        *) echo .svg ;;
    esac
}

# Whether a file is a whole page, and nothing before or after it.
is_page() {
    [ "$(head -n 1 "$1")" = '<!DOCTYPE html>' ] && [ "$(tail -n 1 "$1")" = '</html>' ]
}

ways="alloc alloc_plot export curve pareto analyze memory chart plan npy report table overlay"
for way in $ways; do
    end=$(ending)
    plain=$way.plain$end
    if ! command "$plain" >out.txt 2>err.txt; then
        fail "$way: $(cat err.txt)"
        continue
    fi
    [ -s "$plain" ] || fail "$way: an empty file"
    [ "$(stat -c %a "$plain")" = "$(printf %o $((0666 & ~0$(umask))))" ] ||
        fail "$way: rights $(stat -c %a "$plain")"

    # A device stays a device, and a link to it a link. One of our own, where it can be made: who
    # may make it could also spoil the system's.
    mkdir device
    mknod "device/own$end" c 1 3 2>err.txt || ln -s /dev/null "device/own$end"
    ln -s "own$end" "device/link$end"
    before=$(stat -c %F "device/own$end")
    for target in "device/link$end" "device/own$end"; do
        command "$target" >out.txt 2>err.txt || fail "$way: $target: $(cat err.txt)"
    done
    [ -L "device/link$end" ] || fail "$way: replaced a link to a device"
    [ "$(stat -c %F "device/own$end")" = "$before" ] || fail "$way: replaced a device"
    [ "$(ls -A device | wc -l)" = 2 ] || fail "$way: left $(ls -A device)"
    rm -r device

    # A link stays a link, and what it leads to is replaced; one that leads nowhere is refused.
    mkdir link link/far
    echo old >"link/far/real$end"
    ln -s "far/real$end" "link/name$end"
    command "link/name$end" >out.txt 2>err.txt || fail "$way: a link: $(cat err.txt)"
    [ -L "link/name$end" ] || fail "$way: replaced a link"
    [ -s "link/far/real$end" ] && [ "$(head -c 3 "link/far/real$end")" != old ] ||
        fail "$way: did not follow a link"
    ln -s nothing "link/lost$end"
    code=0
    command "link/lost$end" >out.txt 2>err.txt || code=$?
    [ "$code" = 5 ] || fail "$way: a link to nothing: exit code $code"
    grep -qF "symbolic link" err.txt || fail "$way: a link to nothing: $(cat err.txt)"
    [ "$(ls -A link | wc -l)" = 3 ] || fail "$way: left $(ls -A link)"
    rm -r link

    # Names that could be foreseen belong to others.
    mkdir taken
    echo mine >precious
    ln -s ../precious "taken/file$end.part"
    ln -s ../precious "taken/file$end.tmp"
    command "taken/file$end" >out.txt 2>err.txt || fail "$way: taken names: $(cat err.txt)"
    [ "$(cat precious)" = mine ] || fail "$way: wrote over another's file"
    [ -L "taken/file$end.part" ] || fail "$way: removed another's link"
    rm -r taken precious

    # A pipe gets all of it.
    mkfifo "pipe$end"
    timeout 20 cat "pipe$end" >received &
    reader=$!
    command "pipe$end" >out.txt 2>err.txt || fail "$way: a pipe: $(cat err.txt)"
    wait "$reader" || fail "$way: nobody wrote to a pipe"
    [ -p "pipe$end" ] || fail "$way: replaced a pipe"
    cmp -s received "$plain" || case $way in
        *plot | curve | pareto | analyze | memory | chart) grep -q '</svg>' received || fail "$way: a pipe got $(wc -c <received) bytes" ;;
        report) is_page received || fail "$way: a pipe got $(wc -c <received) bytes" ;; # with times
        *) fail "$way: a pipe got other bytes: $(cat err.txt)" ;;
    esac
    rm "pipe$end" received

    # Standard output: the file alone, behind what is there already.
    printf 'before' >whole
    command - >>whole 2>err.txt || fail "$way: -: $(cat err.txt)"
    [ "$(head -c 6 whole)" = before ] || fail "$way: -: wrote over what was there"
    tail -c +7 whole >alone
    cmp -s alone "$plain" || { [ "$end" = .svg ] && grep -q '</svg>' alone && head -c 5 alone | grep -q '<?xml'; } ||
        { [ "$way" = report ] && is_page alone; } ||
        fail "$way: -: not the file: $(head -c 60 alone)"
    command - 2>err.txt | cat >alone
    [ -s alone ] || fail "$way: -: nothing through a pipe: $(cat err.txt)"
    rm whole alone
    [ ! -e ./- ] || fail "$way: made a file '-'"

    # Only what was asked for is left.
    rest=$(ls -A | grep -v -e '\.plain\.' -e '^out\.txt$' -e '^err\.txt$' -e '^problem\.csv$' -e '^lines\.csv$' -e '^results$' || true)
    [ -z "$rest" ] || fail "$way: left $rest"
done

# Two things cannot both be standard output.
for args in "alloc problem.csv -o - --json" "alloc problem.csv -o - --plot -" "curve toy --size 64x64 -o - --csv"; do
    code=0
    "$rfexec" $args >out.txt 2>err.txt || code=$?
    [ "$code" = 2 ] || fail "$args: exit code $code"
    grep -qF "standard output" err.txt || fail "$args: $(cat err.txt)"
    [ ! -e ./- ] || rm -- ./-
done
[ "$failures" = 0 ] || exit 1
