"""Boxes that rfexec wrote against PyTorch's and torchvision's boxes of the same output tensor.

    box_cases.py output.npy boxes.json --head yolov8 [--score 0.25] [--iou 0.45] [--classes N] [--agnostic]
            [--transposed] [--image HxW]

output.npy holds the detector's output as the network writes it; boxes.json is what rfexec wrote:
{"boxes": [{"box": [left, top, right, bottom], "score": s, "label": k, "index": i}, ...]}, "index" counting
the candidates of the output from 0. Number, order, and every bit of every box, score, label and index must
be equal. null stands for NaN and infinities. Prints what differs; exit code 1 then.

The reference decodes with PyTorch by the rule of each head's own program and suppresses with
torchvision.ops.nms, label by label but for --agnostic: torchvision's batched_nms and Ultralytics shift the
boxes of each label instead, which changes their rounding. Candidates of equal score stay in the order of
the tensor. Limits of these programs on the number of boxes are not applied.

yunet and rfb (--image HxW is needed): output.npy is the joined output, rows of cls, obj, bbox, kps or of
scores, boxes. yunet is decoded as OpenCV's FaceDetectorYN does, with NumPy in float32; "points" of the
boxes must be equal, too. So must those of yolov8-pose, x, y and score of each, which stand behind the
classes (one, unless --classes is given). Masks of yolov8-seg: mask_cases.py.
"""

import argparse
import json
import sys

import numpy as np
import torch
import torchvision

HEADS = ["yolov8", "yolov5", "yolov7", "yolox", "yolov10", "yunet", "rfb", "yolov8-pose", "yolov8-seg", "yolo26-pose",
         "yolo26-seg"]
CHOSEN = ("yolov10", "yolo26-pose", "yolo26-seg")  # the network has suppressed
BEHIND = {"yolov8-pose": 0, "yolov8-seg": 32}  # heads with numbers behind the classes: how many, unless --classes says
FIELDS = ["left", "top", "right", "bottom", "score", "label", "index"]


def rows_of(tensor, head, classes, transposed):
    """The candidates of the output as rows of channels, without channels behind the classes."""
    if tensor.ndim != 3 or tensor.shape[0] != 1:
        raise SystemExit(f"the output has the shape {tensor.shape}, not 1 x a x b")
    rows = torch.from_numpy(np.ascontiguousarray(tensor[0], dtype=np.float32))
    fixed = {"yolov8": 4, "yolov10": 6}.get(head, 5)
    if head in ("yunet", "rfb"):
        return rows
    if head.startswith("yolov8") and not transposed:
        rows = rows.T
    if head in BEHIND or head.startswith("yolo26"):
        return rows.contiguous()
    if head == "yolov10":
        return rows[:, :6].contiguous()
    return rows[:, : fixed + (classes or rows.shape[1] - fixed)].contiguous()


def classes_of(rows, head, classes):
    """The number of classes of a head with numbers behind them."""
    if classes or head == "yolov8-pose":
        return classes or 1
    return rows.shape[1] - 4 - BEHIND[head]


def cells_of(image):
    """(column, row) and stride of every cell of an image of (rows, columns)."""
    cells, strides = [], []
    for stride in (8, 16, 32):
        h, w = -(-image[0] // stride), -(-image[1] // stride)
        y, x = np.divmod(np.arange(h * w), w)
        cells.append(np.stack([x, y], 1).astype(np.float32))
        strides.append(np.full((h * w, 1), stride, np.float32))
    return np.concatenate(cells), np.concatenate(strides)


def yunet_points(rows, image):
    """The landmarks of every cell, cells x 5 x 2."""
    cells, strides = cells_of(image)
    return (rows.numpy()[:, 6:].reshape(-1, 5, 2) + cells[:, None]) * strides[:, None]


def yunet_boxes(rows, image):
    values, (cells, strides) = rows.numpy(), cells_of(image)
    if len(values) != len(cells):
        raise SystemExit(f"{len(values)} candidates; an image of {image} has {len(cells)} cells")
    scores = np.sqrt(np.clip(values[:, 0], 0, 1) * np.clip(values[:, 1], 0, 1))
    centre = (cells + values[:, 2:4]) * strides
    half = np.exp(values[:, 4:6].astype(np.float64)).astype(np.float32) * strides / np.float32(2)
    return torch.from_numpy(np.concatenate([centre - half, centre + half], 1)), torch.from_numpy(scores)


def decode(rows, head, score, image, classes=0):
    """Returns (boxes, scores, labels, indices) of the candidates that pass the score."""
    if head == "yunet":
        boxes, scores = yunet_boxes(rows, image)
        passed, labels = scores >= np.float32(score), torch.zeros(len(rows))
    elif head == "rfb":
        boxes = rows[:, 2:] * torch.tensor([image[1], image[0]] * 2, dtype=torch.float32)
        passed, scores, labels = rows[:, 1] > score, rows[:, 1], torch.zeros(len(rows))
    elif head in CHOSEN:
        passed = rows[:, 4] > score
        boxes, scores, labels = rows[:, :4], rows[:, 4], rows[:, 5]
    else:
        half = rows[:, 2:4] / 2
        boxes = torch.cat((rows[:, :2] - half, rows[:, :2] + half), 1)
        if head.startswith("yolov8"):
            end = 4 + classes_of(rows, head, classes) if head in BEHIND else rows.shape[1]
            scores, labels = rows[:, 4:end].max(1)
            passed = scores > score
        elif head == "yolox":
            best, labels = rows[:, 5:].max(1)
            scores = rows[:, 4] * best
            passed = scores >= score
        else:
            products = rows[:, 5:] * rows[:, 4:5]
            if head == "yolov7" and products.shape[1] == 1:
                products = rows[:, 4:5]
            scores, labels = products.max(1)
            passed = (rows[:, 4] > score) & (scores > score)
    indices = passed.nonzero().view(-1)
    return boxes[indices], scores[indices], labels[indices].to(torch.int64), indices


def suppress(boxes, scores, labels, iou, agnostic):
    """Positions of what is left, by falling score."""
    groups = torch.zeros_like(labels) if agnostic else labels
    left = [torch.zeros(0, dtype=torch.int64)]
    for group in torch.unique(groups):
        members = (groups == group).nonzero().view(-1)
        left.append(members[torchvision.ops.nms(boxes[members], scores[members], iou)])
    return by_score(scores, torch.cat(left).sort()[0])


def decay(boxes, scores, labels, score, agnostic):
    """Soft-NMS (Bodla et al., 2017, algorithm 1 with the Gaussian of sigma 0.5), by NumPy: positions of what is left,
    by falling score, and the scores. Overlaps are float32, the product is float64, rounded to float32."""
    corners, scores = boxes.numpy(), scores.numpy().copy()
    groups = np.zeros(len(scores), int) if agnostic else labels.numpy()
    areas = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    remaining, left = np.arange(len(scores)), []
    while len(remaining):
        at = remaining[scores[remaining].argmax()]  # the first of equals
        if not scores[at] > np.float32(score):
            break
        left.append(at)
        remaining = remaining[remaining != at]
        others = remaining[groups[remaining] == groups[at]]
        low, high = np.maximum(corners[others, :2], corners[at, :2]), np.minimum(corners[others, 2:], corners[at, 2:])
        sides = np.maximum(high - low, np.float32(0))
        both = sides[:, 0] * sides[:, 1]
        with np.errstate(invalid="ignore"):
            share = (both / (areas[at] + areas[others] - both)).astype(np.float64)
        share[np.isnan(share)] = 0  # of boxes without area
        scores[others] = (scores[others] * np.exp(-share * share / 0.5)).astype(np.float32)
    return torch.tensor(left, dtype=torch.int64), torch.from_numpy(scores)


def by_score(scores, positions):
    return positions[scores[positions].sort(descending=True, stable=True)[1]]


def points_of(rows, head, image, classes):
    if head == "yunet":
        return yunet_points(rows, image).reshape(-1, 10)
    if head == "yolov8-pose":
        return rows.numpy()[:, 4 + classes_of(rows, head, classes) :]
    return rows.numpy()[:, 6:] if head == "yolo26-pose" else np.zeros((len(rows), 0), np.float32)


def reference(rows, head, score, iou, agnostic, image=None, classes=0, soft=False):
    """The rows of FIELDS that rfexec has to write, with the numbers of points behind them."""
    boxes, scores, labels, indices = decode(rows, head, score, image, classes)
    points = points_of(rows, head, image, classes)
    if head in CHOSEN:
        left = by_score(scores, torch.arange(len(scores)))
    elif soft:
        left, scores = decay(boxes, scores, labels, score, agnostic)
    else:
        left = suppress(boxes, scores, labels, iou, agnostic)
    return [
        [*map(np.float32, boxes[at].tolist()), np.float32(scores[at].item()), int(labels[at]), int(indices[at]),
         *map(np.float32, points[indices[at]])]
        for at in left.tolist()
    ]


def number(value):
    return np.float32(np.nan if value is None else value)


def read(path):
    with open(path, encoding="utf-8") as file:
        boxes = json.load(file)["boxes"]
    return [[*map(number, box["box"]), number(box["score"]), box["label"], box["index"],
             *(number(value) for point in box.get("points", ()) for value in point)] for box in boxes]


def same(ours, theirs):
    if isinstance(theirs, int):
        return isinstance(ours, int) and ours == theirs
    if not np.isfinite(theirs):
        return bool(np.isnan(ours))
    return bool(ours == theirs)


def differences(ours, theirs):
    """Texts of the boxes that differ."""
    texts = []
    for at, (a, b) in enumerate(zip(ours, theirs)):
        names = [*FIELDS, *(f"number {i} of points" for i in range(len(b)))]
        wrong = [f"{field} {x}, expected {y}" for field, x, y in zip(names, a, b) if not same(x, y)]
        if len(a) != len(b):
            wrong.append(f"{len(a)} numbers, expected {len(b)}")
        if wrong:
            texts.append(f"box {at}: {'; '.join(wrong)}")
    texts += [f"box {at} is too much: index {ours[at][6]}" for at in range(len(theirs), len(ours))]
    texts += [f"box {at} is missing: index {theirs[at][6]}" for at in range(len(ours), len(theirs))]
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("boxes")
    parser.add_argument("--head", choices=HEADS, required=True)
    parser.add_argument("--score", type=float, default=0.25)
    parser.add_argument("--iou", type=float, default=0.45)
    parser.add_argument("--classes", type=int, default=0, help="0: all channels behind the fixed ones")
    parser.add_argument("--soft-nms", action="store_true")
    parser.add_argument("--agnostic", action="store_true", help="boxes of all labels suppress each other")
    parser.add_argument("--transposed", action="store_true", help="yolov8 as 1 x candidates x (4 + classes)")
    parser.add_argument("--image", metavar="HxW", help="rows and columns of the network's input")
    args = parser.parse_args()
    image = tuple(map(int, args.image.split("x"))) if args.image else None
    if image is None and args.head in ("yunet", "rfb"):
        parser.error(f"--head {args.head} needs --image")
    ours = read(args.boxes)
    rows = rows_of(np.load(args.output), args.head, args.classes, args.transposed)
    theirs = reference(rows, args.head, args.score, args.iou, args.agnostic, image, args.classes, args.soft_nms)
    wrong = differences(ours, theirs)
    print(f"{args.boxes}: {len(ours)} boxes, {len(theirs)} of torchvision {torchvision.__version__}, "
          f"{len(wrong)} differ")
    for text in wrong[:10]:
        print(f"  {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
