#!/bin/sh
# Compares rfexec with ONNX Runtime and with ONNX's own node tests. Needs PyPI once; the virtual
# environment stays in the build directory.
#   sh tests/oracle/run.sh [BUILD_DIR]
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
venv=$build/oracle-venv
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import onnx, onnxruntime' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$top/tests/oracle/requirements.txt"
fi
work=$build/oracle
mkdir -p "$work"
cd "$top/tests/oracle"
for net in mobilenet_v2 resnet18; do
    "$build/rfexec" export "$net" -o "$work/$net.onnx"
done
"$venv/bin/python" check_models.py "$build/rfexec" "$work/mobilenet_v2.onnx" "$work/resnet18.onnx" \
    "$top/data/defect_net.onnx" --sizes 224x224,319x257 --tiles 3x2
"$venv/bin/python" check_onnx_nodes.py "$build/rfexec" --least 100
