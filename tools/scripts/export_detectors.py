"""Exports detectors of Ultralytics with random weights as ONNX files, by Ultralytics' own exporter.

    python tools/scripts/export_detectors.py OUT_DIR [NAME ...]

One file <name>.onnx for each of NETWORKS, for images of any height and width that are multiples of 32.
The weights are drawn, then every batch norm is set to the statistics of one drawn image, and the last
convolutions are scaled so that scores lie all over 0..1 and boxes have sides of all sizes: a fresh
network gives nearly the same numbers for every candidate.
Needs torch, ultralytics, onnx and onnxslim. tests/acceptance/detectors.py compares rfexec's boxes on
these files."""

import os
import pathlib
import shutil
import tempfile

os.environ.setdefault("YOLO_AUTOINSTALL", "false")
os.environ.setdefault("YOLO_OFFLINE", "true")

import torch
from drawn_networks import drawn_image, export_named, set_norms
from ultralytics import YOLO

NETWORKS = {
    "yolov8n": "yolov8n.yaml",
    "yolo11n": "yolo11n.yaml",
    "yolo12n": "yolo12n.yaml",
    "yolov5nu": "yolov5n.yaml",
    "yolov10n": "yolov10n.yaml",
    "yolo26n": "yolo26n.yaml",
    "yolov8n-seg": "yolov8n-seg.yaml",
    "yolo11n-seg": "yolo11n-seg.yaml",
    "yolov8n-pose": "yolov8n-pose.yaml",
    "yolo11n-pose": "yolo11n-pose.yaml",
    "yolov8n-obb": "yolov8n-obb.yaml",
    "yolo11n-obb": "yolo11n-obb.yaml",
    "yolo26n-seg": "yolo26n-seg.yaml",
    "yolo26n-pose": "yolo26n-pose.yaml",
    "yolo26n-obb": "yolo26n-obb.yaml",
}
# the file chooses the boxes itself
END_TO_END = {"yolov10n", "yolo26n", "yolo26n-seg", "yolo26n-pose", "yolo26n-obb"}
SIDE = 640  # of the image that the statistics are from
LOGIT_SPREAD, LOGIT_MEAN = 1.6, -4.0  # of 80 classes the largest is then mostly between -2 and 2
BOX_SPREAD = 3.0
ONE_CLASS_LOGIT = -1.5  # mean of networks with one class
FURTHER_SPREAD = 1.5  # of coefficients of masks and of key points, about 0


def scale_to(conv, values, spread, mean):
    """Scales a convolution so that every channel gets this mean and standard deviation."""
    factor = spread / values.std((0, 2, 3))
    conv.bias.data = (conv.bias.data - values.mean((0, 2, 3))) * factor + mean
    conv.weight.data *= factor[:, None, None, None]


def spread_heads(model, image):
    """Scales the last convolutions of boxes, classes and angles of every level, by the image."""
    head, seen, hooks = model.model[-1], {}, []
    names = ("cv2", "cv3", "cv4", "cv4_kpts")
    names += tuple(f"one2one_{name}" for name in names)
    lists = [(name, getattr(head, name)) for name in names if getattr(head, name, None) is not None]
    last = [(name, level[-1] if isinstance(level, torch.nn.Sequential) else level) for name, levels in lists for level in levels]
    last = [(name, conv) for name, conv in last if isinstance(conv, torch.nn.Conv2d)] # cv4 of Pose26 goes on in cv4_kpts
    for _, conv in last:
        hooks.append(conv.register_forward_hook(lambda conv, _, out: seen.__setitem__(conv, out)))
    model(image)
    logits = (LOGIT_SPREAD, ONE_CLASS_LOGIT if head.nc == 1 else LOGIT_MEAN)
    values = {"cv2": (BOX_SPREAD, 0.0), "cv3": logits, "cv4": (FURTHER_SPREAD, 0.0)}
    for name, conv in last:
        scale_to(conv, seen[conv], *values[name.removeprefix("one2one_")[:3]])
    for hook in hooks:
        hook.remove()


def export(name, path):
    torch.manual_seed(7)
    image = torch.from_numpy(drawn_image(SIDE, SIDE))
    wrapped = YOLO(NETWORKS[name])
    with torch.no_grad():
        set_norms(wrapped.model, image)
        spread_heads(wrapped.model, image)
    with tempfile.TemporaryDirectory() as work:
        wrapped.model.yaml_file = str(pathlib.Path(work) / f"{name}.yaml")
        wrapped.model.pt_path = str(pathlib.Path(work) / f"{name}.pt")
        made = wrapped.export(format="onnx", dynamic=True, simplify=False, imgsz=SIDE, device="cpu",
                              nms=False if name in END_TO_END else None)
        shutil.move(made, path)


if __name__ == "__main__":
    export_named(__doc__, NETWORKS, export)
