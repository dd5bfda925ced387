#!/bin/sh
# Truncated and changed models through the program: exit code 3 and a reason, never a signal or a
# hang. Truncated: always 3. With a byte changed: 3, or 0 when the byte did not matter.
#   test_corrupt_onnx.sh RFEXEC MODEL.onnx WORK_DIR
set -eu
program=$1 model=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
size=$(wc -c <"$model")
refused=0 runs=0

# run FILE WHAT: sets code
run() {
    code=0
    timeout 60 "$program" analyze "$1" --size 64x64 >"$work/out" 2>"$work/err" || code=$?
    runs=$((runs + 1))
    if [ "$code" -eq 3 ]; then
        refused=$((refused + 1))
        grep -q '^rfexec: .' "$work/err" || { echo "$2: no reason given"; exit 1; }
    elif [ "$code" -ne 0 ]; then
        echo "$2: exit code $code"
        cat "$work/err"
        exit 1
    fi
}

run "$model" "the model as it is"
[ "$code" -eq 0 ] || { echo "the model as it is: refused"; exit 1; }

i=0
while [ "$i" -lt 200 ]; do
    cut=$i
    [ "$i" -lt 100 ] || cut=$((size - 1 - (i - 100) * (size / 101)))
    head -c "$cut" "$model" >"$work/model.onnx"
    run "$work/model.onnx" "cut to $cut bytes"
    [ "$code" -eq 3 ] || { echo "cut to $cut bytes: accepted"; exit 1; }
    i=$((i + 1))
done

# The first 200 bytes, one by one, as 0xff.
before=$refused
cp "$model" "$work/model.onnx"
chmod u+w "$work/model.onnx"
i=0
while [ "$i" -lt 200 ]; do
    printf '\377' | dd of="$work/model.onnx" bs=1 seek="$i" conv=notrunc 2>/dev/null
    run "$work/model.onnx" "byte $i changed"
    dd if="$model" of="$work/model.onnx" bs=1 skip="$i" seek="$i" count=1 conv=notrunc 2>/dev/null
    i=$((i + 1))
done
[ "$refused" -gt "$before" ] || { echo "no changed byte was refused"; exit 1; }
cmp "$model" "$work/model.onnx"
echo "$runs runs, $refused refused with a reason"
