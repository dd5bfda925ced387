#!/bin/sh
# Holds regions, points and summaries against SciPy, rasterio (GDAL) and geopandas, text against SciPy and
# OpenCV, GeoJSON against RFC 7946.
# Needs PyPI once; the virtual environment stays in the build directory. Arguments after the first go to
# answers.py.
#   sh tests/oracle/answers.sh [BUILD_DIR [--cases N] [--large]]
# Exit code 77, with words: PyPI cannot be reached, nothing was compared.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
[ $# -eq 0 ] || shift
. "$top/tools/python_packages.sh"
venv=$build/answers-venv
if ! need_packages "$venv" "$top/tests/oracle/answers.txt" \
    'cv2, geojson_validator, geopandas, onnx, pyclipper, pycocotools, rasterio, scipy, shapely'; then
    echo "NOT compared with SciPy and rasterio: packages cannot be installed from PyPI (see above)"
    exit 77
fi
mkdir -p "$build/answers"
cd "$build/answers"
"$venv/bin/python" "$top/tests/oracle/answers.py" "$build/rfexec" "$@"
