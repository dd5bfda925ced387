#!/usr/bin/env python3
"""Heads that a file describes: the boxes of rfexec beside those of NumPy and torchvision.

    anchor_heads.py [--folder DIR] [--sizes HxW,...] PROGRAM [NAME ...]

For each network of tools/scripts/export_anchor_heads.py and each size:
1. network and head file are exported, unless they are in DIR already;
2. the boxes of `rfexec run --boxes --head FILE.json` are those of a reference on the outputs that the same
   run writes: number, order and every bit. Anchors are torchvision's own, decoding is float32 in the order of
   torchvision's BoxCoder (exp, sigmoid and softmax in float64, then rounded), suppression is
   torchvision.ops.nms. Those of a CenterNet are those of its published decoding, in PyTorch;
3. torchvision's own decoding of all candidates agrees within 1e-3 pixels and 1e-5 of a score;
4. the file of boxes has the same bytes under every plan and with one to three threads, with the network's
   outputs written or not;
5. `run --part` and `merge` give the same bytes for 1, 2, 3 and 5 parts.

Needs torch, torchvision and onnx. Where one is missing it says so, and nothing is compared. The exit code is
1 when anything was missed; every miss is printed.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import detectors

NEEDED = ("torch", "torchvision", "onnx")
SIZES = "320x320,288x384,640x480,416x512,800x608"  # SSD300 takes no smaller ones
SCORE, IOU = 0.4, 0.45


def powers_of(values):
    """exp in float64, rounded to float32."""
    import numpy as np

    return np.exp(values.astype(np.float64)).astype(np.float32)


def sigmoid(values):
    import numpy as np

    return (1 / (1 + np.exp(-values.astype(np.float64)))).astype(np.float32)


def softmax(values):
    import numpy as np

    powers = np.exp(values.astype(np.float64) - values.max(-1, keepdims=True).astype(np.float64))
    return (powers / np.add.accumulate(powers, -1)[..., -1:]).astype(np.float32)


def around(centre, side):
    import numpy as np

    half = np.float32(0.5) * side
    return np.concatenate([centre - half, centre + half], 1)


def by_deltas(deltas, anchors, weights, limit):
    """torchvision.models.detection._utils.BoxCoder.decode_single, and the function that decodes a point."""
    import numpy as np

    wide = anchors[:, 2:] - anchors[:, :2]
    middle = anchors[:, :2] + np.float32(0.5) * wide
    scaled = deltas / np.array(weights, np.float32)
    boxes = around(scaled[:, :2] * wide + middle, powers_of(np.minimum(scaled[:, 2:], np.float32(limit))) * wide)
    return boxes, lambda values: values / np.array(weights[:2], np.float32) * wide + middle


def feature_maps(model, shape):
    """Sizes of the levels, found without computing them."""
    import torch

    features = model.backbone.eval().to("meta")(torch.zeros(1, 3, *shape, device="meta"))
    return [torch.zeros(1, 1, *level.shape[-2:]) for level in features.values()]


def anchors_of(model, shape):
    """torchvision's anchors of an image, and its image list."""
    import torch
    from torchvision.models.detection.image_list import ImageList

    images = ImageList(torch.zeros(1, 3, *shape), [shape])
    return model.anchor_generator(images, feature_maps(model, shape))[0]


def limited(boxes, shape):
    import numpy as np

    return np.stack([boxes[:, i].clip(0, np.float32(shape[1 - i % 2])) for i in range(4)], 1)


def torchvision_net(name, found, shape):
    """Boxes, scores of classes and torchvision's own of both."""
    import export_anchor_heads
    import numpy as np
    import torch

    model, _, about = export_anchor_heads.NETWORKS[name]()
    anchors, regression = anchors_of(model, shape), found["bbox_regression"][0]
    logits = found["cls_logits"][0]
    if name == "fcos":
        sides = anchors.numpy()
        middle, wide = np.float32(0.5) * (sides[:, :2] + sides[:, 2:]), sides[:, 2:] - sides[:, :2]
        far = regression * np.concatenate([wide, wide], 1)
        boxes = np.concatenate([middle - far[:, :2], middle + far[:, 2:]], 1)
        scores = np.sqrt(sigmoid(logits) * sigmoid(found["bbox_ctrness"][0]))
        theirs = model.box_coder.decode(torch.from_numpy(regression), anchors)
        their_scores = torch.sqrt(torch.sigmoid(torch.from_numpy(logits)) *
                                  torch.sigmoid(torch.from_numpy(found["bbox_ctrness"][0])))
    else:
        boxes, _ = by_deltas(regression, anchors.numpy(), about.get("weights", [1, 1, 1, 1]), about["limit"])
        scores = sigmoid(logits) if name == "retinanet" else softmax(logits)
        theirs = model.box_coder.decode_single(torch.from_numpy(regression), anchors)
        given = torch.from_numpy(logits)
        their_scores = torch.sigmoid(given) if name == "retinanet" else torch.softmax(given, -1)
    worst = [float(np.abs(a - b.numpy()).max()) for a, b in ((boxes, theirs), (scores, their_scores))]
    if about.get("background") == 0:
        scores[:, 0] = -1
    return limited(boxes, shape), scores, None, worst


def grid_of(shape, stride):
    """Columns and rows of all cells of a level, row by row."""
    import numpy as np

    h, w = -(-shape[0] // stride), -(-shape[1] // stride)
    y, x = np.divmod(np.arange(h * w), w)
    return np.stack([x, y], 1).astype(np.float32)


def raw_net(found, shape):
    """YOLOv5's decoding (models/yolo.py, Detect.forward)."""
    import export_anchor_heads
    import numpy as np

    boxes, scores = [], []
    for output, stride, sides in zip(("p3", "p4", "p5"), (8, 16, 32), export_anchor_heads.RAW_ANCHORS):
        values = sigmoid(found[output][0].transpose(1, 2, 0, 3)).reshape(-1, 3, found[output].shape[-1])
        grid = grid_of(shape, stride)[:, None] - np.float32(0.5)
        centre = (values[..., :2] * 2 + grid) * np.float32(stride)
        side = (values[..., 2:4] * 2) ** 2 * np.array(sides, np.float32)
        boxes.append(around(centre.reshape(-1, 2), side.reshape(-1, 2)))
        scores.append((values[..., 5:] * values[..., 4:5]).reshape(len(boxes[-1]), -1))
    return np.concatenate(boxes), np.concatenate(scores), None, [0.0, 0.0]


def faces_net(found, shape):
    """Maps of 15 values of 2 anchors, the values slower; landmarks as in RetinaFace."""
    import numpy as np

    every = [[], [], []]
    for output, stride in zip(("p3", "p4", "p5"), (8, 16, 32)):
        _, channels, h, w = found[output].shape
        values = found[output].reshape(channels // 2, 2, h * w).transpose(2, 1, 0).reshape(-1, channels // 2)
        centre = np.repeat((grid_of(shape, stride) + np.float32(0.5)) * np.float32(stride), 2, 0)
        side = np.tile(np.array([[2 * stride] * 2, [4 * stride] * 2], np.float32), (h * w, 1))
        boxes, point = by_deltas(values[:, :4], around(centre, side), [10, 10, 5, 5], np.inf)
        every[0].append(boxes)
        every[1].append(sigmoid(values[:, 14:]))
        every[2].append(np.concatenate([point(values[:, 4 + 2 * i:6 + 2 * i]) for i in range(5)], 1))
    return *(np.concatenate(part) for part in every), [0.0, 0.0]


def centres_net(found, before):
    """CenterNet's published decoding (models/decode.py: _nms, _topk, ctdet_decode), of all boxes above the score
    in place of the best 100; rows as box_cases.read reads them. before: hm is before the sigmoid."""
    import numpy as np
    import torch
    from torch.nn import functional

    heat, sides, offset = (torch.from_numpy(found[output]) for output in ("hm", "wh", "reg"))
    if before:
        heat = torch.from_numpy(sigmoid(found["hm"]))
    heat = heat * (functional.max_pool2d(heat, 3, stride=1, padding=1) == heat).float()
    count, width, cells = int((heat > SCORE).sum()), heat.shape[3], heat.shape[2] * heat.shape[3]
    in_class, index = torch.topk(heat.view(1, heat.shape[1], -1), min(count, cells))
    chosen, at = torch.topk(in_class.view(1, -1), count)
    labels, index = at[0] // index.shape[2], index.view(1, -1).gather(1, at)[0]
    offset, sides = (values.permute(0, 2, 3, 1).reshape(-1, 2)[index] for values in (offset, sides))
    xs, ys = index % width + offset[:, 0], index // width + offset[:, 1]
    boxes = torch.stack([xs - sides[:, 0] / 2, ys - sides[:, 1] / 2, xs + sides[:, 0] / 2, ys + sides[:, 1] / 2], 1) * 4
    order = np.lexsort((labels, index, -chosen[0].numpy()))
    return [[*map(np.float32, boxes[i].tolist()), np.float32(chosen[0, i].item()), int(labels[i]), int(index[i])]
            for i in order]


def reference(boxes, scores, points, every):
    """Rows as box_cases.read reads them."""
    import box_cases
    import numpy as np
    import torch

    if every:
        index, labels = np.nonzero(scores > np.float32(SCORE))
    else:
        labels = scores.argmax(1)
        index = np.nonzero(scores.max(1) > np.float32(SCORE))[0]
        labels = labels[index]
    chosen, boxes = torch.from_numpy(scores[index, labels]), torch.from_numpy(boxes[index])
    left = box_cases.suppress(boxes, chosen, torch.from_numpy(labels), IOU, False)
    more = points if points is not None else np.zeros((len(scores), 0), np.float32)
    return [[*map(np.float32, boxes[at].tolist()), np.float32(chosen[at].item()), int(labels[at]), int(index[at]),
             *map(np.float32, more[index[at]])] for at in left.tolist()]


def by_name(program, model, image, first, other, asked):
    """Whether the head that is recognised, without a file, gives the same boxes."""
    wrong = detectors.boxes_of(program, model, image, other, "--head", "centernet", *asked)
    found = not wrong and json.loads(other.read_text())["boxes"] == json.loads(first.read_text())["boxes"]
    return detectors.say(found, model.stem, wrong or "the same boxes by --head centernet")


def compare(program, model, image, shape, work):
    import box_cases
    import export_anchor_heads
    import numpy as np

    name, first = f"{model.stem} {shape[0]}x{shape[1]}", work / "first.json"
    asked = ("--head", model.with_suffix(".json"), "--score", SCORE, "--iou", IOU, "--max-boxes", 1000000)
    wrong = detectors.boxes_of(program, model, image, first, "-o", work / "out.npy", *asked, "--untiled", "--threads", 1)
    if wrong:
        return detectors.say(False, name, wrong)
    about = json.loads(model.with_suffix(".json").read_text())
    outputs = {output for part in about["outputs"] for output in part["names"]}
    found = {output: np.load(work / f"out.{output}.npy") for output in outputs}
    made = {"raw": raw_net, "faces": faces_net}.get(model.stem)
    if about["decode"] == "centernet":
        theirs = centres_net(found, about["activation"] == "sigmoid")
    else:
        boxes, scores, points, worst = (made(found, shape) if made else torchvision_net(model.stem, found, shape))
        theirs = reference(boxes, scores, points, about.get("every_class", False))
    texts = box_cases.differences(box_cases.read(first), theirs)
    good = detectors.say(not texts and len(theirs) > 0, name, f"{len(theirs)} boxes of the reference, {len(texts)} "
                         f"differ {'; '.join(texts[:3])}")
    if about["decode"] == "centernet":
        good = by_name(program, model, image, first, work / "other.json", asked[2:]) and good
    elif not made:
        good = detectors.say(worst[0] <= 1e-3 and worst[1] <= 1e-5, name,
                             f"{len(boxes)} candidates at most {worst[0]:.1e} pixels and {worst[1]:.1e} of a score "
                             f"from torchvision's") and good
    plans = ("--untiled --threads 3", "--bands 64 --threads 2", "--tiles 2x3 --threads 3", "--memory 400MiB")
    good = detectors.same_plans(program, model, image, name, first, work / "other.json", plans, *asked) and good
    return detectors.same_parts(program, model, image, name, first, work, asked[:2], asked[2:]) and good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args = detectors.begin(parser, SIZES, NEEDED)
    import export_anchor_heads
    import numpy as np

    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        kept = args.folder or work
        for name in args.names or export_anchor_heads.NETWORKS:
            model = kept / f"{name}.onnx"
            if not model.exists():
                export_anchor_heads.export(name, model)
            for size in args.sizes.split(","):
                shape = tuple(map(int, size.split("x")))
                np.save(work / "image.npy", export_anchor_heads.drawn_image(*shape))
                missed += not compare(args.program, model, work / "image.npy", shape, work)
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
