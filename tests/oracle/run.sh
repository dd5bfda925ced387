#!/bin/sh
# Compares rfexec with ONNX Runtime and with ONNX's own node tests. Needs PyPI once; the virtual
# environment stays in the build directory.
#   sh tests/oracle/run.sh [BUILD_DIR]
# Exit code 77, with words: PyPI cannot be reached, nothing was compared.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
. "$top/tools/python_packages.sh"
venv=$build/oracle-venv
if ! need_packages "$venv" "$top/tests/oracle/requirements.txt" 'imagecodecs, onnx, onnxruntime, PIL, tifffile'; then
    echo "NOT compared with ONNX Runtime: its packages cannot be installed from PyPI (see above)"
    exit 77
fi
work=$build/oracle
mkdir -p "$work"
cd "$top/tests/oracle"
for net in mobilenet_v2 resnet18; do
    "$build/rfexec" export "$net" -o "$work/$net.onnx"
done
"$venv/bin/python" check_models.py "$build/rfexec" "$work/mobilenet_v2.onnx" "$work/resnet18.onnx" \
    "$top/data/defect_net.onnx" "$top/data/phase_net.onnx" --sizes 224x224,319x257 --tiles 3x2
"$venv/bin/python" check_models.py "$build/rfexec" "$work/mobilenet_v2.onnx" "$work/resnet18.onnx" \
    --sizes 224x224 --tiles 3x2 --conv openblas
# At the sizes for which they are written: their padding or their reshapes hang on it.
for at in deeplab_v3:257x257 posenet:353x257 blazeface:128x128 srgan:41x56 resnet_v2_101:224x224 \
    mobilenet_v3_large:224x224 mobilenet_v3_small:161x225 real_esrgan:24x33 real_esrgan_compact:41x56 \
    vae_decoder:12x17 swinir_light:32x40 yolov8n:256x320 ppocr_det:129x200 efficientnet_v2_s:161x225 \
    convnext_tiny:161x225 nafnet:65x83; do
    net=${at%:*}
    "$build/rfexec" export "$net" --size "${at#*:}" -o "$work/$net.onnx"
    "$venv/bin/python" check_models.py "$build/rfexec" "$work/$net.onnx" --sizes "${at#*:}" \
        --tiles 3x2
    rm -f "$work/$net.onnx"
done
# So deep and without shortcuts, random weights let rounding grow: fused and unfused differ by 6e-5.
"$build/rfexec" export inception_v4 -o "$work/inception_v4.onnx"
"$venv/bin/python" check_models.py "$build/rfexec" "$work/inception_v4.onnx" --sizes 299x299 \
    --tiles 3x2 --tolerance 5e-4
rm -f "$work/inception_v4.onnx"
# Norms in all forms that exporters write, and a network that lives by them.
"$venv/bin/python" norm_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/norm_*.onnx --sizes 61x83,33x130 --tiles 3x2
"$build/rfexec" export unet_instance --size 128x160 -o "$work/unet_instance.onnx"
"$venv/bin/python" check_models.py "$build/rfexec" "$work/unet_instance.onnx" --sizes 128x160 \
    --tiles 3x2
rm -f "$work"/norm_*.onnx "$work/unet_instance.onnx"
# Attention in the forms that exporters write, and as one operator.
"$venv/bin/python" attention_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/attention_*.onnx --sizes 21x33,16x16 \
    --tiles 3x2
rm -f "$work"/attention_*.onnx
# Layers of Swin transformers as exporters write them, for one size.
"$venv/bin/python" window_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/window_*.onnx --sizes 24x32 --tiles 3x2
rm -f "$work"/window_*.onnx
# Layers of YOLO11 and YOLO12, which come from the same script.
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/area_large*.onnx --sizes 132x66 --tiles 3x2
rm -f "$work"/area_large*.onnx
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/area_*.onnx --sizes 24x32 --tiles 3x2
rm -f "$work"/area_*.onnx
# Batches, and models that are fixed to one.
"$venv/bin/python" batch_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/batch_*.onnx --sizes 48x64 --batch 3 \
    --tiles 3x2
rm -f "$work"/batch_*.onnx
"$venv/bin/python" check_models.py "$build/rfexec" "$work/resnet18.onnx" "$top/data/phase_net.onnx" \
    --sizes 96x128 --batch 4 --tiles 3x2
# Heads of detectors.
"$venv/bin/python" head_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/head_*.onnx --sizes 64x96 --tiles 3x2
rm -f "$work"/head_*.onnx
# Weights and tables that the file computes from constants.
"$venv/bin/python" constant_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/constant_*.onnx --sizes 61x83 --tiles 3x2
rm -f "$work"/constant_*.onnx
# Coordinates and grids that the file makes from the image's size.
"$venv/bin/python" coordinate_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/coordinates_*.onnx --sizes 70x83,97x64 \
    --tiles 3x2
rm -f "$work"/coordinates_*.onnx
# Branches and functions in the place of nodes, and shapes of which parts are empty.
"$venv/bin/python" inlined_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/inlined_*.onnx --sizes 61x83 --tiles 3x2
rm -f "$work"/inlined_*.onnx
# Operators in forms that exporters write.
"$venv/bin/python" operator_models.py "$work"
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/op_unfold_*.onnx --sizes 61x83 --tiles 3x2
rm -f "$work"/op_unfold_*.onnx
"$venv/bin/python" check_models.py "$build/rfexec" "$work"/op_*.onnx --sizes 61x83,33x130 --tiles 3x2 \
    --tolerance 5e-4 # places are computed, and pixels beside each other differ
rm -f "$work"/op_*.onnx
# Outputs of every shape, order and type.
"$venv/bin/python" check_output_forms.py "$build/rfexec"
"$venv/bin/python" check_onnx_nodes.py "$build/rfexec"
# Operators that are composed of others, and quantised weights.
"$venv/bin/python" composed_models.py "$build/rfexec"
# 8-bit networks: every byte.
"$venv/bin/python" quantised_models.py "$build/rfexec"
"$venv/bin/python" quantize_cases.py "$build/rfexec"
# Random Resize nodes; more of them with RFX_CASES=2000.
"$venv/bin/python" resize_cases.py "$build/rfexec"
# Every attribute of the schemas; RFX_CASES also takes the versions between the oldest and the newest.
"$venv/bin/python" attribute_cases.py "$build/rfexec"
