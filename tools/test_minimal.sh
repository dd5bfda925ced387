#!/bin/sh
# The minimal library (preset minimal): links nothing but the C library, exports the public header's
# names alone, gives the bits of the full build, and says which option is OFF when something needs it.
# Then builds with each option OFF by itself. About 3 minutes on two cores.
#
#     sh tools/test_minimal.sh             # on this machine; compares with build/librfexec.so
#     sh tools/test_minimal.sh aarch64     # cross-built, run by qemu; compares with the native one
#
# The last line is "N passed, N failed"; 77: packages for the cross-build are missing.
set -eu
cd "$(dirname "$0")/.."
. tools/count_tests.sh
top=$PWD
target=${1-native}
compiler=${CC:-cc}
emulator=
preset=minimal
if [ "$target" = aarch64 ]; then
    preset=minimal-aarch64
    compiler=aarch64-linux-gnu-gcc
    emulator=qemu-aarch64
    for package in gcc-aarch64-linux-gnu qemu-user libc6-dev:arm64 libnanopb-dev:arm64; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" && continue
        echo "missing: $package"
        exit 77
    done
fi
build=$top/build-$preset
work=$build/test_work
export LC_ALL=C

# In an emulator images are small.
large="defects: 84600 values, checksum df956e5fc8115e96
phases: 1350000 values, checksum 1c0a2c3c7a1276d7"
small="defects: 3420 values, checksum 63eafb975f696d8b
phases: 54000 values, checksum f841af387f822585"

build_library() {
    cmake --preset "$preset" && cmake --build --preset "$preset" --parallel "$(nproc)"
}

# What a loader looks for: the C library, in as many files as it has.
check_needed() {
    readelf -dW "$build/librfexec.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$work/needed"
    [ -s "$work/needed" ] && ! grep -vE '^(libc\.so\.6|libm\.so\.6|ld-linux-[a-z0-9-]*\.so\.[12])$' "$work/needed"
}

check_names() {
    nm -D --defined-only "$build/librfexec.so" | sed 's/.* //' | sort >"$work/exported"
    nm -g --defined-only "$build/librfexec.a" | sed -n 's/.* [A-Z] //p' | sort >"$work/archived"
    diff rfexec/api/exported_symbols.txt "$work/exported" && diff rfexec/api/exported_symbols.txt "$work/archived"
}

# compile PROGRAM SOURCE LIBRARY...
compile() {
    program=$1
    shift
    "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror -Irfexec/include "$@" -o "$work/$program"
}

# checksums PROGRAM SIZE BYTES THREADS WANTED: of both networks.
checksums() {
    for net in defect_net phase_net; do
        # $2 is a list of words on purpose.
        # shellcheck disable=SC2086
        $emulator "$1" "data/$net.onnx" $2 "$3" "$4" || return 1
    done >"$work/checksums" && printf '%s\n' "$5" | diff - "$work/checksums"
}

# same_bits PROGRAM: without a budget, and in smaller ones with several threads.
same_bits() {
    checksums "$1" "300 240" 0 1 "$small" && checksums "$1" "300 240" 8000000 2 "$small" || return 1
    [ "$target" = native ] || return 0
    checksums "$1" "1500 1200" 0 1 "$large" && checksums "$1" "1500 1200" 16000000 3 "$large"
}

check_shared() {
    compile embedded examples/embedded.c "$build/librfexec.so" -Wl,-rpath,"$build" &&
        same_bits "$work/embedded"
}

check_archive() {
    compile embedded_static examples/embedded.c "$build/librfexec.a" -lm -pthread &&
        same_bits "$work/embedded_static"
}

# The same program with the library that has everything.
check_full() {
    [ -e build/librfexec.so ] || { echo "no build/librfexec.so: run tools/test.sh first"; return 1; }
    compile embedded_full examples/embedded.c build/librfexec.so -Wl,-rpath,"$top/build" &&
        same_bits "$work/embedded_full"
}

check_refusals() (
    compile left_out tests/cli/left_out.c "$build/librfexec.so" -Wl,-rpath,"$build"
    cd "$work"
    printf '\211PNG\r\n\032\n' >a.png
    printf '\377\330\377' >a.jpg
    printf 'II*\0' >a.tif
    printf 'RIFF....WEBP' >a.webp
    printf '....jP  ' >a.jp2
    printf 'BM....' >a.bmp
    : >a.svs
    mkdir -p a.zarr
    echo '{}' >a.zarr/zarr.json
    { printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1), }"
      printf '\000\000\200\077'; } >mask.npy # one pixel, 1.0
    # shellcheck disable=SC2086
    $emulator ./left_out "$top/data/defect_net.onnx" a.png a.jpg a.tif a.webp a.jp2 a.bmp a.svs a.zarr >said
    cat said
    for line in "a.png 3 PNG" "a.jpg 3 JPEG" "a.tif 3 TIFF" "a.webp 3 WEBP" "a.jp2 3 JPEG2000" "a.bmp 3 STB" \
        "a.svs 3 SLIDES" "a.zarr 3 ZARR" "tif 2 TIFF" "png 2 PNG" "zarr 2 ZARR" "openblas 3 OPENBLAS" \
        "builtin 3 BUILTINS" "mask 3 PNG"; do
        grep -q "^${line% *} .*(RFX_WITH_${line##* }=OFF)\$" said || { echo "not said: $line"; exit 1; }
    done
    grep -qx "npy 0 " said && grep -qx "masked 0 " said
)

# without OPTION: the library with all the others builds, exports its names and knows of no other.
without() {
    cmake -S . -B build-without -DCMAKE_BUILD_TYPE=Debug -DRFX_WERROR=ON $on -D"$1"=OFF >"$work/configured" ||
        { cat "$work/configured"; return 1; }
    cmake --build build-without --parallel "$(nproc)" --target rfx_library rfx_archive >"$work/built" 2>&1 ||
        { tail -n 30 "$work/built"; return 1; }
    nm -D --defined-only build-without/librfexec.so | sed 's/.* //' | sort | diff rfexec/api/exported_symbols.txt -
}

mkdir -p "$work"
run_counted "minimal library for $target" build_library || true
run_counted "it needs the C library alone" check_needed || true
run_counted "it exports the public header's names" check_names || true
run_counted "bits of the example, shared" check_shared || true
run_counted "bits of the example, static" check_archive || true
run_counted "what is left out is refused in words" check_refusals || true
if [ "$target" = native ]; then
    run_counted "bits of the example, full library" check_full || true
    options=$(sed -n 's/^rfx_part(\([A-Z0-9]*\) .*/RFX_WITH_\1/p' tools/cmake/rfx_options.cmake)
    on=
    for option in $options; do on="$on -D$option=ON"; done
    for option in $options; do run_counted "library without $option" without "$option" || true; done
fi
report_counts
