#!/bin/sh
# Pictures larger than the budget: makes a 30,000 x 20,000 tiled BigTIFF, a 20,000 x 20,000 PNG and a
# 12,000 x 9,000 baseline JPEG (columns x rows; 3 GB of files), runs a network on each inside the
# budget, and holds the kernel's peak to it. TIFF and PNG lose nothing, so their output must be that
# of the same picture made up on the way, bit by bit.
#     sh tests/acceptance/big_images.sh BUILD_DIR [WORK_DIR]
# NETWORK, MEMORY and CASES (of: tiff png jpeg) in the environment change what is run; KEEP=1 keeps
# the pictures.
set -u
build=$1
work=${2:-$build/big_images}
network=${NETWORK:-mobilenet_v2}
memory=${MEMORY:-128MiB}
mkdir -p "$work" || exit 1
passed=0
failed=0

# The number of bytes in a size such as 128MiB.
bytes_of() {
    case $1 in
        *MiB) echo $((${1%MiB} * 1048576)) ;;
        *GiB) echo $((${1%GiB} * 1073741824)) ;;
        *) echo "$1" ;;
    esac
}
budget=$(bytes_of "$memory")

# field NAME FILE: the last value of that name in a JSON document.
field() {
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$2" | tail -n 1
}

# check KIND SIZE SUFFIX
check() {
    picture=$work/picture.$3
    if [ ! -s "$picture" ] && ! "$build/tests/make_big_image" "$1" "$2" "$picture"; then
        echo "$1 $2: the picture could not be made"
        failed=$((failed + 1))
        return
    fi
    "$build/rfexec" run "$network" "$picture" --memory "$memory" --json >"$work/$1.json"
    code=$?
    peak=$(field peak_rss_bytes "$work/$1.json")
    words="exit $code, peak ${peak:-none} of $budget bytes, $(field seconds "$work/$1.json") s"
    good=yes
    [ "$code" = 0 ] && [ -n "$peak" ] && [ "$peak" -le "$budget" ] || good=no
    if [ "$good" = yes ] && [ "$1" != jpeg ]; then
        "$build/rfexec" run "$network" "synthetic:$2" --memory "$memory" --json >"$work/made_up.json"
        hash=$(field hash "$work/$1.json")
        words="$words, hash $hash"
        [ "$hash" = "$(field hash "$work/made_up.json")" ] || good="no: the picture made up gives another hash"
    fi
    [ "${KEEP:-0}" = 1 ] || rm -f "$picture"
    if [ "$good" = yes ]; then
        passed=$((passed + 1))
        echo "$1 $2: ok, $words"
    else
        failed=$((failed + 1))
        echo "$1 $2: FAILED ($good), $words"
    fi
}

for case in ${CASES:-tiff png jpeg}; do
    case $case in
        tiff) check tiff "${TIFF_SIZE:-20000x30000}" tif ;;
        png) check png "${PNG_SIZE:-20000x20000}" png ;;
        jpeg) check jpeg "${JPEG_SIZE:-9000x12000}" jpg ;;
        *) echo "no case '$case'" && failed=$((failed + 1)) ;;
    esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
