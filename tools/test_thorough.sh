#!/bin/sh
# What tools/test.sh leaves out, which takes several times as long: long tests, images beside
# rasterio, a build without any warning, the tests of single parts, parsers and random plans with
# the address and undefined behaviour sanitizers, what has threads with ThreadSanitizer, every call
# of a run failing in turn, random runs and kills, a small share of each script in tests/acceptance,
# fuzzing for RFX_FUZZ_SECONDS (10) a target, the documentation's pages, builds without codecs, and
# the arithmetic on 64-bit ARM. Run tools/test.sh first: its build is used. The last line is "N
# passed, N failed".
set -eu
cd "$(dirname "$0")/.."
. tools/count_tests.sh
jobs=$(nproc)
run_counted "long tests" \
    ctest --preset release -L '^long$' -E '^test_mpi$' -j "$jobs" || true # test_mpi: below
start_beside sh -c "cd build/tests/cli/test_faults_files && RFX_CASES=2000 ../test_faults"
run_counted "comparison with rasterio" sh tests/oracle/pictures.sh build || true
run_counted "answers beside SciPy and rasterio" \
    sh tests/oracle/answers.sh build --cases 4 --large || true
finish_beside "every call that can fail, failing"
strict=build # when tools/test.sh was told RFX_STRICT=1
if ! grep -q '^RFX_WERROR:BOOL=ON' build/CMakeCache.txt; then
    cmake --preset dev
    strict=build-dev
fi
# The sanitized build below compiles the tests without any warning.
run_counted "build without warnings" \
    cmake --build $strict --parallel "$jobs" --target rfexec rfx_library bench_convs || true
if sh tools/install_deps.sh abigail-tools; then
    run_counted "the library's ABI" \
        sh tests/cli/test_abi.sh $strict/librfexec.so . $strict/abi_work || true
else
    echo "== the library's ABI: skipped, needs abigail-tools"
fi
cmake --preset asan-ubsan
run_counted "sanitized build" cmake --build --preset asan-ubsan --parallel "$jobs" || true
# Four take a third of the time, to calculate: other tests run the same code with the sanitizers.
slow='^(test_conv_winograd|test_planner_chains|test_planner_size|test_measurement_cache)$'
run_counted "sanitized tests" \
    env RFX_CASES=100 ctest --preset asan-ubsan -L sanitized -E "$slow" -j "$jobs" || true
if sh tools/install_deps.sh clang libclang-rt-dev libomp-dev && cmake --preset tsan; then
    run_counted "build with ThreadSanitizer" cmake --build --preset tsan --parallel "$jobs" || true
    run_counted "threads" ctest --preset tsan -j "$jobs" || true
else
    echo "== threads: skipped, needs clang, libclang-rt-dev and libomp-dev"
fi

# Before it, the release build had no MPI where it was not installed.
if sh tools/install_deps.sh libopenmpi-dev openmpi-bin && cmake --preset release >/dev/null &&
    cmake --build --preset release --parallel "$jobs" --target rfexec-mpi; then
    run_counted "ranks of MPI" ctest --preset release -R '^test_mpi' || true
else
    echo "== ranks of MPI: skipped, needs libopenmpi-dev and openmpi-bin"
fi

at=tests/acceptance
run_counted "matrix of cores, threads and tiles" \
    env SIZE=513x769 TILES="4x4 1x7" \
    sh $at/verify_matrix.sh build/rfexec mobilenet_v2:features.6 data/defect_net.onnx:defects || true
run_counted "all kinds of plans" env CORES="Haswell SkylakeX" THREADS=2 SIZES="97x113 161x129" \
    sh $at/verify_plans.sh build/rfexec squeezenet1_1 mobilenet_v1 fsrcnn efficientnet_b0 || true
run_counted "pictures larger than the budget" \
    env NETWORK=squeezenet1_1 MEMORY=48MiB TIFF_SIZE=4000x3000 PNG_SIZE=3000x4000 JPEG_SIZE=3000x3000 \
    sh $at/big_images.sh build || true
run_counted "memory does not grow with height" env NETWORK=squeezenet1_1 WIDTH=1024 MEMORY=48MiB \
    sh $at/height.sh build/rfexec 2048 4096 8192 || true
# One second of processor time is aimed at; two are allowed on a busy machine. Like those beside it,
# which look at bytes, it keeps one processor busy.
start_beside python3 $at/planning.py --seconds 2 build/rfexec mobilenet_v2 resnet50
run_counted "networks of thousands of nodes at their smallest budgets" \
    python3 $at/smallest_budgets.py --networks 12 --seconds 50 build/rfexec || true
run_counted "smallest budgets of every network: what is named and what is used" \
    python3 $at/named_budgets.py \
    --networks mobilenet_v2,unet_instance,posenet,nafnet,data/defect_net.onnx,data/quantised_u8.onnx build/rfexec \
    || true
run_counted "ranges of built-in networks on bytes" \
    python3 tools/scripts/make_builtin_ranges.py build/rfexec --check rfexec/builtin/builtin_ranges.c || true
finish_beside "planning: time, memory, signals"
if [ -x build/answers-venv/bin/python ]; then # of tests/oracle/answers.sh
    run_counted "boxes of text of a PP-OCR detector" \
        build/answers-venv/bin/python $at/text_boxes.py build/rfexec --sizes 320x480,224x224 || true
else
    echo "== boxes of text of a PP-OCR detector: skipped, tests/oracle/answers.sh has installed nothing"
fi
run_counted "planted packings" python3 $at/packing.py --seeds 3 --at-least 3 build/rfexec \
    build/tests/make_packing chains-gone-30 windows-gone spirals || true
if sh tools/install_deps.sh chromium chromium-driver; then
    run_counted "the page of --viewer in a browser" \
        python3 $at/viewer_page.py build/rfexec data/defect_net.onnx build/viewer_page || true
else
    echo "== the page of --viewer: skipped, needs chromium and chromium-driver"
fi
start_beside sh tools/test_site.sh
# The virtual environment of tests/oracle/run.sh.
if [ -x build/oracle-venv/bin/python ]; then
    run_counted "8-bit operators beside ONNX Runtime" \
        build/oracle-venv/bin/python tests/oracle/quantised_cases.py --cases 60 build/rfexec || true
else
    echo "== 8-bit operators beside ONNX Runtime: skipped, tools/test.sh has not installed it"
fi
run_counted "random networks of bytes" \
    python3 $at/random_quantised.py --networks 400 --seed 50000 build/tests/suites || true
finish_beside "documentation without warnings"
run_counted "random runs and kills" \
    sh tools/scripts/soak.sh --runs 30 --smallest 5 --kills 30 --seconds 60 build/rfexec || true
run_counted "fuzzing of every parser and the public header" \
    sh tests/fuzz/run.sh "${RFX_FUZZ_SECONDS:-10}" || true
run_counted "minimal library, and each part left out" sh tools/test_minimal.sh || true
# The first one installs the compiler.
run_counted "64-bit ARM, emulated" sh tools/test_aarch64.sh || true
run_counted "minimal library on 64-bit ARM, emulated" sh tools/test_minimal.sh aarch64 || true
report_counts
