#!/bin/sh
# Installs what is missing (Debian 12), builds, runs every test, then compares with ONNX Runtime
# (from PyPI, in a virtual environment in the build directory). Arguments go to ctest and leave the
# comparison out:
#     sh tools/test.sh -R cli
set -eu
cd "$(dirname "$0")/.."
sh tools/install_deps.sh
cmake --preset release
cmake --build --preset release --parallel "$(nproc)"
if [ $# -eq 0 ]; then
    sh tests/oracle/run.sh build
fi
ctest --preset release --output-on-failure "$@"
