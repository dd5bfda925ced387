#!/bin/sh
# Installs what is missing (Debian 12), builds, runs all tests but the long ones, then tests the
# Python package and compares with ONNX Runtime (both need PyPI, in virtual environments in the
# build directory; skipped, in words, where it cannot be reached). The last line is "N
# passed, N failed". Arguments go to ctest and leave all that out:
#     sh tools/test.sh -R cli
# With RFX_STRICT=1 warnings are errors, and the build has debugging information: then
# tools/test_thorough.sh needs no build of its own for these.
set -eu
cd "$(dirname "$0")/.."
. tools/count_tests.sh
sh tools/install_deps.sh
sh tools/install_deps.sh libopenslide0 || echo "no OpenSlide: tests of slides are skipped" >&2
sh tools/install_deps.sh libblosc1 || echo "no libblosc: chunks that it packed are not tested" >&2
strict=
[ "${RFX_STRICT:-0}" = 0 ] || strict="-DRFX_WERROR=ON -DCMAKE_C_FLAGS=-g"
# Options are words on purpose.
# shellcheck disable=SC2086
cmake --preset release $strict
cmake --build --preset release --parallel "$(nproc)"
if [ $# -eq 0 ]; then
    set -- -LE '^long$' # tools/test_thorough.sh runs those
    all=yes
else
    all=no
fi
run_counted "tests" ctest --preset release --output-on-failure -j "$(nproc)" "$@" || true
if [ "$all" = yes ]; then
    start_beside sh python/tests/run.sh build # both keep little more than one processor busy
    run_counted "comparison with ONNX Runtime" sh tests/oracle/run.sh build || true
    finish_beside "Python package"
fi
report_counts
