#!/bin/sh
# Installs the Python package, with the library of the build, into a virtual environment in the build
# directory, and runs its tests. Needs PyPI once.
#   sh python/tests/run.sh [BUILD_DIR]
# Exit code 77, with words: PyPI cannot be reached, nothing was tested.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
. "$top/tools/python_packages.sh"
venv=$build/python-venv
if ! need_packages "$venv" "$top/python/tests/requirements.txt" \
    'dask, distributed, numpy, onnx, onnxruntime, pytest, scikit_build_core, tifffile, zarr'; then
    echo "the Python package was NOT tested: its packages cannot be installed from PyPI (see above)"
    exit 77
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-index --no-build-isolation \
    --no-deps --force-reinstall "$top/python" -C cmake.define.RFEXEC_LIBRARY="$build/librfexec.so"
cd "$build" # not where the sources are: what is tested is what was installed
RFEXEC_PROGRAM=$build/rfexec "$venv/bin/python" -m pytest --quiet -p no:cacheprovider \
    "$top/python/tests"
