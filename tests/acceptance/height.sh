#!/bin/sh
# Memory does not grow with height: mobilenet_v2 on images 8192 wide and 8192, 32768 and 65536 high
# within 96 MiB; the peaks, by the kernel, lie within 1 %. Of each height the least of three runs
# counts: the kernel adds up pages per processor in batches and maps pages of files beside those that
# are touched, so that any two runs may differ by some hundred KiB. That much is allowed where 1 % is
# less: a plane of bytes that grew with the picture would be more. About 30 minutes.
#     sh tests/acceptance/height.sh build/rfexec [HEIGHT ...]
# WIDTH, MEMORY, NETWORK and RUNS in the environment change the rest.
set -u
program=$1
shift
[ $# -gt 0 ] || set -- 8192 32768 65536

noise=524288 # bytes: 25 runs of one picture lay within 330 KB

# The number that stands under a key of the report.
value() {
    printf '%s\n' "$found" | sed -n "s/^ *\"$1\": \([0-9.]*\).*/\1/p"
}

least=
most=
for height in "$@"; do
    peak=
    for run in $(seq "${RUNS:-3}"); do
        found=$("$program" run "${NETWORK:-mobilenet_v2}" "synthetic:${height}x${WIDTH:-8192}" \
            --memory "${MEMORY:-96MiB}" --json) || exit 1
        bytes=$(value peak_rss_bytes)
        [ -n "$bytes" ] || exit 1
        echo "$height rows, run $run: $bytes bytes, MAC ratio $(value macs_ratio), $(value seconds) s"
        [ -n "$peak" ] && [ "$peak" -le "$bytes" ] || peak=$bytes
    done
    [ -n "$least" ] && [ "$least" -le "$peak" ] || least=$peak
    [ -n "$most" ] && [ "$most" -ge "$peak" ] || most=$peak
done
echo "least $least, most $most bytes"
[ $(((most - least) * 100)) -le "$least" ] || [ $((most - least)) -le "$noise" ]
