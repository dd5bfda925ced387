#!/bin/sh
# The same bits on 64-bit ARM: cross-builds with Debian's compiler and arm64 libraries, and runs tests
# of the arithmetic under qemu-user: own functions, the kernels against fingerprints made on x86-64,
# operators against their references, random plans, random networks of bytes, and the golden
# fingerprints of whole networks. About 6 minutes on two cores.
#
#     sh tools/test_aarch64.sh [--all]     # --all: the fingerprints of all networks at both sizes
#
# Installs what is missing where it may (root or sudo); else says what that is and exits with 77. The
# last line is "N passed, N failed".
set -eu
cd "$(dirname "$0")/.."
. tools/count_tests.sh

# nanopb's generator and onnx.proto are the build machine's: tools/install_deps.sh.
packages="gcc-aarch64-linux-gnu qemu-user libc6-dev:arm64 libgomp1:arm64
    libopenblas-openmp-dev:arm64 libpng-dev:arm64 libjpeg62-turbo-dev:arm64 libtiff-dev:arm64
    libjansson-dev:arm64 libxxhash-dev:arm64 libcmocka-dev:arm64 libnanopb-dev:arm64"

missing() {
    for package in $packages; do
        status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
        [ "$status" = "install ok installed" ] || printf ' %s' "$package"
    done
}

# $as_root and $packages are lists of words on purpose.
# shellcheck disable=SC2086
install_missing() {
    $as_root dpkg --add-architecture arm64 && $as_root apt-get update -q &&
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends $packages
}

lacking=$(missing)
if [ -n "$lacking" ]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    if [ "$(id -u)" -eq 0 ]; then as_root=""; else as_root="sudo -n"; fi
    echo "installing:$lacking"
    if ! install_missing >"$log" 2>&1; then
        tail -n 5 "$log"
        echo "missing packages:$lacking"
        echo "as root: dpkg --add-architecture arm64 && apt-get update &&" \
            "apt-get install --no-install-recommends$lacking"
        exit 77
    fi
fi

build=build-aarch64
tests="test_real_math test_exact_sum test_kernels test_kernel_table test_reference_ops
    test_op_elementwise test_op_spatial test_op_gemm test_image_synthetic test_random_tiles"
cmake -S . -B $build -DCMAKE_TOOLCHAIN_FILE=tools/cmake/aarch64-linux-gnu.cmake \
    -DCMAKE_BUILD_TYPE=Release -DRFX_BUILD_DEMO=OFF
# $tests is a list of words on purpose.
# shellcheck disable=SC2086
run_counted "build for aarch64" \
    cmake --build $build --parallel "$(nproc)" --target rfexec $tests || true

# shellcheck disable=SC2086
pattern=$(echo $tests | tr ' ' '|')
golden="1|3"
[ "${1-}" != --all ] || golden="1|2|3|8"
run_counted "tests on aarch64" env RFX_CASES="${RFX_CASES:-40}" \
    ctest --test-dir $build --output-on-failure -j "$(nproc)" \
    -R "^($pattern|fingerprints_neon_($golden)|(quantised_fingerprints|test_[a-z_]*_quantised)_neon)\$" || true
report_counts
