#!/bin/sh
# Memory does not grow with height: mobilenet_v2 on images 8192 wide and 8192, 32768 and 65536 high
# within 96 MiB; the peaks of the three processes, by the kernel, lie within 1 % and 512 KiB, by which
# two runs of the same image may differ. About 10 minutes.
#     sh tests/acceptance/height.sh build/rfexec [HEIGHT ...]
# WIDTH, MEMORY and NETWORK in the environment change the rest.
set -u
program=$1
shift
[ $# -gt 0 ] || set -- 8192 32768 65536
least=
most=
for height in "$@"; do
    found=$("$program" run "${NETWORK:-mobilenet_v2}" "synthetic:${height}x${WIDTH:-8192}" \
        --memory "${MEMORY:-96MiB}" --json) || exit 1
    peak=$(printf '%s\n' "$found" | sed -n 's/^ *"peak_rss_bytes": \([0-9]*\).*/\1/p')
    ratio=$(printf '%s\n' "$found" | sed -n 's/^ *"macs_ratio": \([0-9.]*\).*/\1/p')
    seconds=$(printf '%s\n' "$found" | sed -n 's/^ *"seconds": \([0-9]*\.[0-9]\).*/\1/p')
    [ -n "$peak" ] || exit 1
    echo "$height rows: $peak bytes, MAC ratio $ratio, $seconds s"
    [ -n "$least" ] && [ "$least" -le "$peak" ] || least=$peak
    [ -n "$most" ] && [ "$most" -ge "$peak" ] || most=$peak
done
echo "least $least, most $most bytes"
[ $(((most - least - 524288) * 100)) -le "$least" ]
