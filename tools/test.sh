#!/bin/sh
# Installs what is missing (Debian 12), builds, runs every test. Arguments go to ctest:
#     sh tools/test.sh -R cli
set -eu
cd "$(dirname "$0")/.."
sh tools/install_deps.sh
cmake --preset release
cmake --build --preset release --parallel "$(nproc)"
ctest --preset release --output-on-failure "$@"
