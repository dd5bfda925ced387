#!/bin/sh
# Configures the project as for another processor and looks at what would be compiled: flags and
# kernels of x86 must be for x86 alone. usage: test_processors.sh SOURCE_DIR WORK_DIR
set -eu
source=$1 work=$2
rm -rf "$work"
mkdir -p "$work"

# Prints the compile commands of the kernels, one a line.
kernels_of() {
    cmake -S "$source" -B "$work/$1" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$1" \
        -DRFX_BUILD_TESTS=OFF -DRFX_BUILD_DEMO=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
        >"$work/$1.log" 2>&1 || { cat "$work/$1.log"; exit 1; }
    grep '"command".*layers/kernels/' "$work/$1/compile_commands.json"
}

kernels_of x86_64 >"$work/x86"
kernels_of aarch64 >"$work/arm"
sources=$(find "$source/layers/kernels" -name '*.c' | wc -l)
for set in base avx2 avx512; do
    [ "$(grep -c -- "-DRFX_KERNEL_VARIANT=$set " "$work/x86")" -gt 0 ] ||
        { echo "x86_64 has no $set kernels"; exit 1; }
done
[ "$(grep -c -- -march=x86-64-v3 "$work/x86")" -gt 0 ] || { echo "no flags for AVX2"; exit 1; }
[ "$(grep -- -march= "$work/x86" | grep -c VARIANT=base)" -eq 0 ] ||
    { echo "base kernels have flags of an instruction set"; exit 1; }

if grep -E -- '-march=|-mavx|-mprefer' "$work/aarch64/compile_commands.json" ||
    grep -E 'VARIANT=avx|HAVE_AVX|kernels/x86' "$work/aarch64/compile_commands.json"; then
    echo "aarch64 compiles what is for x86"
    exit 1
fi
[ "$(grep -c -- "-DRFX_KERNEL_VARIANT=neon " "$work/arm")" -gt 0 ] ||
    { echo "aarch64 has no neon kernels"; exit 1; }
[ "$(wc -l <"$work/arm")" -le "$sources" ] || { echo "aarch64 compiles kernels twice"; exit 1; }
echo "processors: $(wc -l <"$work/x86") kernels for x86_64, $(wc -l <"$work/arm") for aarch64"
