#!/bin/sh
# The long form of tests/cli/test_part_files.sh: networks of all kinds at odd sizes in 1, 2, 3, 5 and
# 8 parts, runs that are killed at random moments and begun again, and a picture of 50,000 x 40,000
# pixels in 8 parts of 128 MiB, merged inside 64 MiB. About ten minutes.
#     sh tests/acceptance/parts.sh BUILD_DIR WORK_DIR
# KILLS (50), PICTURE (50000x40000) and SEED in the environment change what is run.
set -eu
RFEXEC=$(realpath "$1")/rfexec
export RFEXEC
source=$(realpath "$(dirname "$0")/../..")
rm -rf "$2"
mkdir -p "$2"
cd "$2"
fail() {
    echo "parts.sh: $*" >&2
    exit 1
}
run_parts() { sh "$source/tools/scripts/run_parts.sh" "$@"; }

# MODEL INPUT [OPTIONS]: the whole into whole.npy
whole() {
    "$RFEXEC" run "$@" -o whole.npy >told || fail "$* fails"
    hash=$(sed -n 's/^output .*hash //p' told)
    rm -rf all.npy all.npy.parts
}
# the merged file is the whole
same() {
    grep -q "hash $hash\$" told || fail "$*: $(cat told), not $hash"
    cmp -s whole.npy all.npy || fail "$*: other bytes"
}

for case in mobilenet_v2:97x113 mobilenet_v2:161x97 resnet50:65x97 resnet50:129x33 \
    unet:67x45 unet_instance:53x38 unet_instance:67x49 deeplab_v3:65x97 ppocr_det:83x129 yolov8n:97x161 \
    "$source/data/phase_net.onnx:101x67" "$source/data/defect_net.onnx:203x187"; do
    for n in 1 2 3 5 8; do
        whole "${case%:*}" "synthetic:${case##*:}"
        run_parts $n 2 "${case%:*}" "synthetic:${case##*:}" all.npy -j 1 >told 2>said ||
            fail "$case in $n parts: $(tail -n 3 said)"
        same "$case in $n parts"
    done
    echo "$case: 1, 2, 3, 5, 8 parts, one hash"
done

# Moments from 0 to 0.5 s, the same ones for the same SEED. What was made before is kept each time.
moments=$(awk -v n="${KILLS:-50}" -v seed="${SEED:-1}" \
    'BEGIN { srand(seed); for (i = 0; i < n; i++) printf "%.3f\n", 0.5 * rand() }')
killed=0 done=0
for network in fsrcnn:300x200 unet_instance:67x49; do
    whole "${network%:*}" "synthetic:${network##*:}"
    for moment in $moments; do
        code=0
        timeout -s KILL "$moment" sh "$source/tools/scripts/run_parts.sh" 5 2 "${network%:*}" \
            "synthetic:${network##*:}" all.npy -j 1 >told 2>said || code=$?
        case $code in
            0)
                done=$((done + 1))
                same "$network after kills"
                rm -rf all.npy all.npy.parts
                ;;
            137) killed=$((killed + 1)) ;;
            *) fail "$network, killed after $moment s: exit code $code: $(tail -n 3 said)" ;;
        esac
    done
    run_parts 5 2 "${network%:*}" "synthetic:${network##*:}" all.npy -j 1 >told 2>said ||
        fail "$network, begun again: $(tail -n 3 said)"
    same "$network, begun again"
done
echo "killed $killed times and begun again, $((done + 2)) whole: one hash each"

rm -rf all.npy all.npy.parts
picture=${PICTURE:-50000x40000}
"$RFEXEC" run "$source/data/defect_net.onnx" "synthetic:$picture" --memory 128MiB >told
hash=$(sed -n 's/^output .*hash //p' told)
run_parts 8 1 "$source/data/defect_net.onnx" "synthetic:$picture" all.npy --memory 128MiB \
    >told 2>said || fail "$picture: $(tail -n 3 said)"
sed -n 's/^measured *\([0-9.]*\) MiB peak.*/\1/p' said >peaks
awk -v n=8 '$1 > 128 { exit 1 } END { exit NR != n }' peaks || fail "peaks of parts: $(cat peaks)"
rm all.npy
"$RFEXEC" merge all.npy.parts/part[1-8].npy -o all.npy --memory 64MiB >told
grep -q "hash $hash\$" told || fail "$picture: $(cat told), not $hash"
echo "$picture in 8 parts: the hash of one run; peaks $(sort -n peaks | tail -n 1) MiB of 128," \
    "merged with$(sed -n 's/^measured//p' told) of 64"
echo "parts: passed"
