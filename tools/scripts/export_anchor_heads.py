"""Exports detectors of torchvision up to their heads' outputs as ONNX files, with head files.

    python tools/scripts/export_anchor_heads.py OUT_DIR [NAME ...]

For each of NETWORKS a file <name>.onnx, for images of any height and width that are multiples of 32, and
<name>.json, which describes the head to rfexec (docs/answers.md). Outputs are those of the network's head
before torchvision's own postprocessing: bbox_regression, cls_logits and, of fcos, bbox_ctrness. `raw` is a
small network with three outputs as YOLOv5's before decoding, `faces` one with landmarks.

The weights are drawn, every batch norm is set to the statistics of one drawn image, and the last
convolutions are scaled so that scores lie all over 0..1 and boxes have sides of all sizes.
Needs torch, torchvision and onnx. tests/acceptance/anchor_heads.py compares rfexec's boxes on these files."""

import json
import math
import pathlib

import torch
from drawn_networks import drawn_image, export_named, set_norms
from torch import nn
from torchvision.models import detection
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.ops.feature_pyramid_network import LastLevelP6P7

SIDE = 640  # of the image that the statistics are from
CLASSES = 21
BOX_SPREAD = 0.6


class Heads(nn.Module):
    """A torchvision detector from the image to its head's outputs."""

    def __init__(self, model):
        super().__init__()
        self.backbone, self.head = model.backbone, model.head

    def forward(self, image):
        found = self.head(list(self.backbone(image).values()))
        return tuple(found[name] for name in sorted(found))


class Raw(nn.Module):
    """A backbone of three levels. Its heads write a tensor of each: 1 x anchors x rows x columns x values, or
    a map whose channels have the values first."""

    def __init__(self, anchors, values, maps):
        super().__init__()
        self.anchors, self.values, self.maps = anchors, values, maps
        self.stem = nn.Sequential(*self.block(3, 16), *self.block(16, 24), *self.block(24, 32))
        self.down = nn.ModuleList([nn.Sequential(*self.block(32, 32)) for _ in range(2)])
        self.heads = nn.ModuleList([nn.Conv2d(32, anchors * values, 1) for _ in range(3)])

    @staticmethod
    def block(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 3, 2, 1), nn.BatchNorm2d(outputs), nn.SiLU()

    def forward(self, image):
        maps = [self.stem(image)]
        for down in self.down:
            maps.append(down(maps[-1]))
        found = [head(level) for head, level in zip(self.heads, maps)]
        if self.maps:
            return tuple(found)
        return tuple(x.view(1, self.anchors, self.values, x.shape[2], x.shape[3]).permute(0, 1, 3, 4, 2)
                     for x in found)


def spread(conv, values, wide, mean):
    """Scales a convolution so that its values get this mean and standard deviation."""
    factor = wide / values.std()
    conv.bias.data = (conv.bias.data - values.mean()) * factor + mean
    conv.weight.data *= factor


def spread_last(model, image, wanted):
    """wanted: (convolution, spread, mean) of the last convolutions. One that is used for all levels is scaled
    by the first of them."""
    for conv, wide, mean in wanted:
        seen = []
        hook = conv.register_forward_hook(lambda _, __, out, seen=seen: seen.append(out))
        model(image)
        hook.remove()
        spread(conv, seen[0], wide, mean)


def logits(classes, mean):
    return [(conv, 1.6, mean) for conv in classes]


def boxes(convs):
    return [(conv, BOX_SPREAD, 0.0) for conv in convs]


def listed(name, *values):
    return {"names": [name], "axes": "yxa v", "values": list(values)}


def pyramid():
    """The backbone of torchvision's RetinaNet and FCOS, with the smallest ResNet."""
    return resnet_fpn_backbone(backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d,
                               returned_layers=[2, 3, 4], extra_blocks=LastLevelP6P7(256, 256))


def retinanet():
    model = detection.RetinaNet(pyramid(), CLASSES)
    head = model.head
    sizes = [[size, int(size * 2 ** (1 / 3)), int(size * 2 ** (2 / 3))] for size in (32, 64, 128, 256, 512)]
    about = {
        "outputs": [listed("bbox_regression", "box"), listed("cls_logits", "scores")],
        "levels": [{"anchors": {"sizes": level, "ratios": [0.5, 1, 2], "round": True}} for level in sizes],
        "decode": "deltas", "offset": 0, "limit": math.log(1000 / 16),
        "activation": "sigmoid", "every_class": True, "clip": True,
    }
    return model, boxes([head.regression_head.bbox_reg]) + logits([head.classification_head.cls_logits], -3.0), about


def of_ssd(model, convs_of):
    generator = model.anchor_generator
    pairs = [(level.clamp(0, 1) if generator.clip else level).tolist() for level in generator._wh_pairs]
    steps = generator.steps or [None] * len(pairs)
    levels = [{"anchors": level, **({"stride": step} if step else {})} for level, step in zip(pairs, steps)]
    about = {
        "outputs": [listed("bbox_regression", "box"), listed("cls_logits", "scores")],
        "levels": levels, "decode": "deltas", "shares": True, "weights": [10, 10, 5, 5],
        "limit": math.log(1000 / 16), "activation": "softmax", "background": 0, "every_class": True, "clip": True,
    }
    head = model.head
    wide = [(conv, 2.0, 0.0) for conv in convs_of(head.regression_head)]
    return model, wide + logits(convs_of(head.classification_head), 0.0), about


def ssd300():
    model = detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=CLASSES)
    return of_ssd(model, lambda head: list(head.module_list))


def ssdlite():
    model = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES)
    return of_ssd(model, lambda head: [level[1] for level in head.module_list])


def fcos():
    model = detection.FCOS(pyramid(), CLASSES)
    head = model.head
    about = {
        "outputs": [listed("bbox_ctrness", "objectness"), listed("bbox_regression", "box"),
                    listed("cls_logits", "scores")],
        "levels": [{"anchors": [[size, size]]} for size in (8, 16, 32, 64, 128)],
        "decode": "distances", "offset": 0, "activation": "sigmoid", "root": True, "every_class": True, "clip": True,
    }
    wanted = [(head.regression_head.bbox_reg, 1.0, 1.5), (head.regression_head.bbox_ctrness, 1.5, 1.0)]
    return model, wanted + logits([head.classification_head.cls_logits], -3.0), about


RAW_ANCHORS = [[[10, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 119]], [[116, 90], [156, 198], [373, 326]]]


def raw():
    model = Raw(3, 5 + CLASSES, False)
    about = {
        "outputs": [{"names": ["p3", "p4", "p5"], "axes": "a y x v", "values": ["box", "objectness", "scores"]}],
        "levels": [{"stride": stride, "anchors": level} for stride, level in zip((8, 16, 32), RAW_ANCHORS)],
        "decode": "yolov5", "activation": "sigmoid",
    }
    return model, [(conv, 1.6, 0.0) for conv in model.heads], about


def faces():
    model = Raw(2, 15, True)
    about = {
        "outputs": [{"names": ["p3", "p4", "p5"], "axes": "va y x", "values": ["box", "points", "scores"]}],
        "levels": [{"stride": stride, "anchors": [[2 * stride, 2 * stride], [4 * stride, 4 * stride]]}
                   for stride in (8, 16, 32)],
        "decode": "deltas", "weights": [10, 10, 5, 5], "activation": "sigmoid",
    }
    return model, [(conv, 1.6, 0.0) for conv in model.heads], about


class Centers(nn.Module):
    """A CenterNet with a small backbone: maps hm, wh and reg of stride 4. before: hm is before the sigmoid.
    Else many neighbours have equal scores, as they are limited."""

    def __init__(self, before):
        super().__init__()
        self.before = before
        self.stem = nn.Sequential(*Raw.block(3, 16), *Raw.block(16, 24))
        self.heads = nn.ModuleList([nn.Sequential(nn.Conv2d(24, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, channels, 1))
                                    for channels in (CLASSES, 2, 2)])

    def forward(self, image):
        found = self.stem(image)
        heat, sides, offset = (head(found) for head in self.heads)
        return heat if self.before else heat.sigmoid().clamp(1e-4, 0.8), sides, offset


def centernet(before=False):
    model = Centers(before)
    about = {
        "outputs": [{"names": ["hm"], "axes": "v y x", "values": ["scores"]},
                    {"names": ["wh"], "axes": "v y x", "values": ["sides"]},
                    {"names": ["reg"], "axes": "v y x", "values": ["centre"]}],
        "levels": [{"stride": 4}], "decode": "centernet", "activation": "sigmoid" if before else "none",
    }
    wanted = [(head[-1], wide, mean) for head, wide, mean in zip(model.heads, (1.6, 4.0, 0.3), (-1.0, 8.0, 0.5))]
    return model, wanted, about


NETWORKS = {"retinanet": retinanet, "ssd300": ssd300, "ssdlite": ssdlite, "fcos": fcos, "raw": raw, "faces": faces,
            "centernet": centernet, "centernet-logits": lambda: centernet(True)}


def export(name, path):
    """Writes `path` and the head file beside it."""
    torch.manual_seed(7)
    model, wanted, about = NETWORKS[name]()
    net = Heads(model) if hasattr(model, "backbone") else model
    image = torch.from_numpy(drawn_image(SIDE, SIDE))
    with torch.no_grad():
        set_norms(net, image)
        spread_last(net, image, wanted)
    names = [name for output in about["outputs"] for name in output["names"]]
    names = names if isinstance(model, Centers) else sorted(set(names))
    torch.onnx.export(net, (image,), str(path), input_names=["image"], output_names=names, dynamo=False,
                      opset_version=17, dynamic_axes={"image": {2: "height", 3: "width"}})
    path.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    export_named(__doc__, NETWORKS, export)
