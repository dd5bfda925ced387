"""Detectors that end in TensorRT's EfficientNMS_TRT: the boxes are those of a plain suppression in numpy."""

import json

import numpy as np
import onnx
import pytest
import rfexec

CLASSES, STRIDE, MOST = 3, 4, 40
NAMES = ("num_dets", "det_boxes", "det_scores", "det_classes")
FORMS = {
    "corners": {},
    "centres": {"box_coding": 1},
    "raw_scores": {"score_activation": 1, "score_threshold": 0.6},
    "agnostic": {"class_agnostic": 1, "iou_threshold": 0.3},
    "no_background": {"background_class": 1},
    "own_boxes": {"own": True},
    "moved_corners": {"anchors": True},
    "moved_centres": {"anchors": True, "box_coding": 1, "score_activation": 1},
    "few": {"max_output_boxes": 3},
    "all": {"score_threshold": 0.0, "iou_threshold": 1.0, "max_output_boxes": 5000},
    "none": {"score_threshold": 1.0},
}


def attributes_of(form):
    given = {"score_threshold": 0.55, "iou_threshold": 0.5, "max_output_boxes": MOST, "background_class": -1,
             "score_activation": 0, "box_coding": 0, "plugin_version": "1", **FORMS[form]}
    return {name: value for name, value in given.items() if name not in ("own", "anchors")}


def save(path, form, rows, columns, domain="TRT", changes=(), inputs=None):
    """Boxes and scores of three classes at every cell; `own`: boxes for each class; `anchors`: boxes relative to
    squares of 12 pixels around the cells."""
    rng = np.random.default_rng(3)
    own, anchors = FORMS[form].get("own", False), FORMS[form].get("anchors", False)
    attributes = {**attributes_of(form), **dict(changes)}
    centred, raw = attributes["box_coding"] == 1, attributes["score_activation"] == 1
    y, x = (axis.ravel() * STRIDE for axis in np.mgrid[: rows // STRIDE, : columns // STRIDE])
    cells = np.stack([x, y, x * 0 + 12, x * 0 + 12] if centred else [x - 4, y - 4, x + 8, y + 8], 1)[None]
    spread = 0.5 if anchors and centred else 4
    kinds = CLASSES if own else 1
    weights = {
        "stem": rng.uniform(-1, 1, (8, 3, STRIDE, STRIDE)).astype(np.float32),
        "kb": rng.uniform(-spread, spread, (4 * kinds, 8, 1, 1)).astype(np.float32),
        "ks": rng.uniform(-2, 2, (CLASSES, 8, 1, 1)).astype(np.float32),
        "cells": (cells[:, :, None] if own else cells).astype(np.float32),
        "list_b": np.array([1, kinds, 4, -1] if own else [1, 4, -1]),
        "list_s": np.array([1, CLASSES, -1]),
    }
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["image", "stem"], ["c"], strides=[STRIDE, STRIDE]),
        node("Tanh", ["c"], ["map"]),
        node("Conv", ["map", "kb"], ["mb"]),
        node("Conv", ["map", "ks"], ["ms"]),
        node("Reshape", ["mb", "list_b"], ["rb"]),
        node("Reshape", ["ms", "list_s"], ["rs"]),
        node("Transpose", ["rb"], ["moves"], perm=[0, 3, 1, 2] if own else [0, 2, 1]),
        node("Transpose", ["rs"], ["logits"], perm=[0, 2, 1]),
        node("Identity" if raw else "Sigmoid", ["logits"], ["scores"]),
        node("Identity", ["moves"], ["boxes"]) if anchors else node("Add", ["moves", "cells"], ["boxes"]),
        node("EfficientNMS_TRT", inputs or ["boxes", "scores"] + ["cells"] * anchors, NAMES, domain=domain, **attributes),
    ]
    value, most = onnx.helper.make_tensor_value_info, attributes["max_output_boxes"]
    outputs = [value(NAMES[0], onnx.TensorProto.INT32, [1, 1]), value(NAMES[1], onnx.TensorProto.FLOAT, [1, most, 4]),
               value(NAMES[2], onnx.TensorProto.FLOAT, [1, most]), value(NAMES[3], onnx.TensorProto.INT32, [1, most])]
    arrays = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    image = value("image", onnx.TensorProto.FLOAT, [1, 3, rows, columns])
    graph = onnx.helper.make_graph(nodes, "plugin", [image], outputs, arrays)
    sets = [onnx.helper.make_opsetid(name, 13) for name in {"", domain}]
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8), path)
    return weights["cells"] if anchors else None


def decode(boxes, anchors, centred):
    """Corners (cells, classes or 1, 4), in float32."""
    boxes = boxes.reshape(boxes.shape[1], -1, 4)
    if anchors is not None:
        anchors = anchors.reshape(-1, 1, 4)
        if centred:
            sizes = anchors[..., 2:] * np.exp(boxes[..., 2:].astype(np.float64)).astype(np.float32)
            boxes = np.concatenate([boxes[..., :2] * anchors[..., 2:] + anchors[..., :2], sizes], -1)
        else:
            ordered = [np.concatenate([np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:])], -1)
                       for b in (boxes, anchors)]
            boxes = ordered[0] + ordered[1]
    if centred:
        half = boxes[..., 2:] * np.float32(0.5)
        boxes = np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)
    return boxes


def overlaps(box, boxes):
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    mine = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    sides = np.maximum(np.minimum(high, mine[1]) - np.maximum(low, mine[0]), np.float32(0))
    both = sides[:, 0] * sides[:, 1]
    area = (high - low)[:, 0] * (high - low)[:, 1] + (mine[1] - mine[0])[0] * (mine[1] - mine[0])[1] - both
    return np.divide(both, area, out=np.zeros_like(both), where=(both > 0) & (area > 0))


def suppress(boxes, scores, anchors, attributes):
    """The plugin's four results."""
    corners, given = decode(boxes, anchors, attributes["box_coding"] == 1), scores[0]
    values = given
    if attributes["score_activation"] == 1:
        values = (1 / (1 + np.exp(-given.astype(np.float64)))).astype(np.float32)
    fine = values >= np.float32(attributes["score_threshold"])
    if 0 <= attributes["background_class"] < CLASSES:
        fine[:, attributes["background_class"]] = False
    cell, label = np.nonzero(fine)
    order = np.argsort(-given[cell, label], kind="stable")
    cell, label = cell[order], label[order]
    boxes = corners[cell, label if corners.shape[1] > 1 else 0]
    alive, kept = np.ones(len(cell), bool), []
    for i in range(len(cell)):
        if not alive[i] or len(kept) == attributes["max_output_boxes"]:
            continue
        kept.append(i)
        near = overlaps(boxes[i], boxes) >= np.float32(attributes["iou_threshold"])
        alive &= ~(near & ((label == label[i]) | bool(attributes.get("class_agnostic"))))
    most, n = attributes["max_output_boxes"], len(kept)
    found = np.array([[n]], np.int32), np.zeros((1, most, 4), np.float32), np.zeros((1, most), np.float32), \
        np.zeros((1, most), np.int32)
    found[1][0, :n], found[2][0, :n], found[3][0, :n] = boxes[kept], values[cell, label][kept], label[kept]
    return dict(zip(NAMES, found))


def run(program, model, image, folder, *options):
    program("run", model, image, "--score", 0, "--boxes", folder / "b.json", "-o", folder / "o.npy", *options)
    return {name: np.load(folder / f"o.{name}.npy") for name in NAMES}, (folder / "b.json").read_bytes()


def same(found, wanted):
    return all(found[name].dtype == array.dtype and found[name].shape == array.shape
               and found[name].tobytes() == array.tobytes() for name, array in wanted.items())


@pytest.mark.parametrize("rows,columns", [(32, 48), (64, 64), (44, 140)])
@pytest.mark.parametrize("form", FORMS)
def test_boxes_are_those_of_numpy(program, tmp_path, form, rows, columns):
    model, image = tmp_path / "net.onnx", f"synthetic:{rows}x{columns}"
    anchors = save(model, form, rows, columns, "TRT" if rows == 32 else "")
    dumps = [option for name in ("boxes", "scores") for option in ("--dump", f"{name}={tmp_path / name}.npy")]
    found, listed = run(program, model, image, tmp_path, "--untiled", "--threads", 1, *dumps)
    cells = rows // STRIDE * (columns // STRIDE)
    boxes, scores = np.load(tmp_path / "boxes.npy"), np.load(tmp_path / "scores.npy").reshape(1, cells, CLASSES)
    wanted = suppress(boxes, scores, anchors, attributes_of(form))
    assert same(found, wanted)
    n = int(wanted["num_dets"][0, 0])
    assert n == 0 if form == "none" else n == 3 if form == "few" else n > 5
    rows_of = json.loads(listed)["boxes"]
    assert [box["label"] for box in rows_of] == wanted["det_classes"][0, :n].tolist()
    assert (np.array([box["box"] for box in rows_of], np.float32).reshape(-1, 4) == wanted["det_boxes"][0, :n]).all()
    for plan in (["--bands", 8, "--threads", 2], ["--tiles", "2x3", "--threads", 3], ["--memory", "32MiB"]):
        found, again = run(program, model, image, tmp_path, *plan)
        assert same(found, wanted) and again == listed
    for n_parts in (1, 3):
        parts = [tmp_path / f"{n_parts}_{k}.npy" for k in range(n_parts)]
        for k, part in enumerate(parts):
            program("run", model, image, "--part", f"{k + 1}/{n_parts}", "-o", part)
        program("merge", *parts, "-o", tmp_path / "m.npy")
        assert same({name: np.load(tmp_path / f"m.{name}.npy") for name in NAMES}, wanted)
        program("merge", *parts, "-o", tmp_path / "m.json", "--score", 0)
        assert (tmp_path / "m.json").read_bytes() == listed
    with rfexec.open(model) as net:
        assert same(net.run(image), wanted) and same(net.run(image, memory="32MiB", threads=2), wanted)
        boxes = net.boxes(image, score=0)
        assert len(boxes) == n and (boxes["label"] == wanted["det_classes"][0, :n]).all()


WILD = [
    ({"score_threshold": -1.0}, "score_threshold is -1"),
    ({"score_threshold": float("nan")}, "score_threshold is nan"),
    ({"iou_threshold": float("nan")}, "iou_threshold is nan"),
    ({"iou_threshold": 1e30}, r"iou_threshold is 1e\+30"),
    ({"iou_threshold": 0.0}, "iou_threshold is 0"),
    ({"max_output_boxes": 0}, "max_output_boxes is 0"),
    ({"max_output_boxes": 2**62}, "max_output_boxes is 4611686018427387904"),
    ({"max_output_boxes": -(2**63)}, "max_output_boxes is -9223372036854775808"),
    ({"box_coding": 2}, "box_coding is 2"),
    ({"score_activation": -1}, "score_activation is -1"),
    ({"plugin_version": "3"}, "plugin_version '3'"),
    ({"more": 1}, "attribute more = 1"),
    ({"score_threshold": 1}, "attribute score_threshold is no float"),
]


@pytest.mark.parametrize("changes,words", WILD)
def test_wild_attributes_are_refused(tmp_path, changes, words):
    save(tmp_path / "net.onnx", "corners", 32, 48, changes=changes)
    with pytest.raises(rfexec.Error, match=words):
        rfexec.open(tmp_path / "net.onnx")


@pytest.mark.parametrize("inputs,words", [
    (["boxes"], "it has 1 inputs"),
    (["boxes", "scores", "cells", "cells"], "it has 4 inputs"),
    (["boxes", ""], "operand 1 is missing"),
    (["scores", "scores"], "boxes 1x96x3, scores 1x96x3"),
    (["boxes", "scores", "scores"], "anchors 1x96x3"),
    (["rb", "scores"], "boxes 1x4x96"),
])
def test_wrong_inputs_are_refused(tmp_path, inputs, words):
    save(tmp_path / "net.onnx", "corners", 32, 48, inputs=inputs)
    with pytest.raises(rfexec.Error, match=words):
        rfexec.open(tmp_path / "net.onnx").run("synthetic:32x48")
