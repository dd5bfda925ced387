"""Boxes with masks: those of the program's files, and of the network's outputs."""

import json
import pickle
import tracemalloc

import numpy as np
import onnx
import pytest
import rfexec

ROWS, COLUMNS, CLASSES, PROTOTYPES = 176, 208, 2, 5
IMAGE = f"synthetic:{ROWS}x{COLUMNS}"
OPTIONS = ("--head", "yolov8-seg", "--class-count", CLASSES, "--iou", "0.9")
SEG = {"head": "yolov8-seg", "class_count": CLASSES, "iou": 0.9}


def save(path, nodes, arrays):
    """Saves a network of an image of any size, whose outputs are boxes and prototypes."""
    values = {"image": [1, 3, "h", "w"], "boxes": None, "prototypes": None}
    image, *outputs = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in values.items()
    )
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = onnx.helper.make_graph(nodes, "net", [image], outputs, weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A detector of the form of YOLOv8's -seg: cells of 16 pixels, prototypes of 4."""
    rng, channels = np.random.default_rng(1), 4 + CLASSES + PROTOTYPES
    kernel = rng.uniform(-1, 1, (channels, 3, 1, 1)).astype(np.float32)
    bias = np.zeros(channels, np.float32)
    kernel[:4] = 0
    kernel[0, 0], kernel[1, 1], kernel[2:4, 2], bias[2:4] = COLUMNS / 4, ROWS / 4, 20, 24
    kernel[4 : 4 + CLASSES] = np.abs(kernel[4 : 4 + CLASSES])
    weights = {
        "k": kernel,
        "b": bias,
        "p": rng.uniform(-1, 1, (PROTOTYPES, 3, 1, 1)).astype(np.float32),
        "s": np.array([1, channels, -1]),
    }
    node = onnx.helper.make_node
    nodes = [
        node("Relu", ["image"], ["stem"]),
        node("Conv", ["stem", "k", "b"], ["cells"], strides=[16, 16]),
        node("Reshape", ["cells", "s"], ["boxes"]),
        node("Conv", ["stem", "p"], ["prototypes"], strides=[4, 4]),
    ]
    return save(tmp_path_factory.mktemp("seg") / "seg.onnx", nodes, weights)


def decoded(counts, rows):
    """A plain reading of run lengths, column by column."""
    return np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(-1, rows).T


def test_masks_are_the_programs(program, model, tmp_path):
    for end in ("json", "coco.json", "geojson"):
        program("run", model, IMAGE, *OPTIONS, "--boxes", tmp_path / f"p.{end}")
    wanted = json.loads((tmp_path / "p.json").read_text())["boxes"]
    coco = json.loads((tmp_path / "p.coco.json").read_text())
    net = rfexec.open(model, (ROWS, COLUMNS))
    found = net.boxes(IMAGE, **SEG, memory="32MiB", threads=2)
    assert len(found) == len(wanted) > 20
    assert found["index"].tolist() == [box["index"] for box in wanted]
    for mask, box, result in zip(found["mask"], wanted, rfexec.to_coco(found)):
        assert mask.counts.tolist() == box["mask"]["counts"] and list(mask.size) == [ROWS, COLUMNS]
        assert result["segmentation"] == coco[wanted.index(box)]["segmentation"]
    assert json.loads(json.dumps(rfexec.to_coco(found)))[0]["segmentation"] == coco[0]["segmentation"]
    assert sum(mask.area > 100 for mask in found["mask"]) > 10
    for end in ("json", "coco.json", "geojson"):
        net.run(IMAGE, output={"boxes": rfexec.File(tmp_path / f"q.{end}", **SEG)}, outputs=[])
        assert (tmp_path / f"p.{end}").read_bytes() == (tmp_path / f"q.{end}").read_bytes()
    with rfexec.Model(model) as plans:  # with runners, and with another output in an array
        maps = plans.run(IMAGE, output={"boxes": rfexec.File(tmp_path / "m.json", **SEG)}, memory="32MiB")
        assert (maps["prototypes"] == net.run(IMAGE)["prototypes"]).all()
    assert (tmp_path / "m.json").read_bytes() == (tmp_path / "p.json").read_bytes()
    assert (pickle.loads(pickle.dumps(found)) == found).all()


def enlarged(values):
    """Four times as many rows, between the centres of the given ones, each operation rounded once."""
    at = np.maximum((np.arange(4 * len(values), dtype=np.float32) + np.float32(0.5)) / 4 - np.float32(0.5), 0)
    row = at.astype(int)
    below, share = np.minimum(row + 1, len(values) - 1), (at - row).astype(np.float32)[:, None]
    return (np.float32(1) - share) * values[row] + share * values[below]


def test_masks_are_those_of_the_outputs(model):
    net = rfexec.open(model, (ROWS, COLUMNS))
    outputs = net.run(IMAGE)
    y, x = np.mgrid[:ROWS, :COLUMNS].astype(np.float32)
    found = net.boxes(IMAGE, **SEG)
    for one in found:
        numbers = outputs["boxes"][0, 4 + CLASSES :, one["index"]]
        values = numbers[0] * outputs["prototypes"][0, 0]
        for number, prototype in zip(numbers[1:], outputs["prototypes"][0, 1:]):
            values = values + number * prototype
        left, top, right, bottom = one["box"]
        wanted = (enlarged(enlarged(values.T).T) > 0) & (x >= left) & (x < right) & (y >= top) & (y < bottom)
        assert (one["mask"].to_array() == wanted).all() and one["mask"].area == wanted.sum()


def test_masks_for_other_programs(model):
    net = rfexec.open(model, (ROWS, COLUMNS))
    found = net.boxes(IMAGE, **SEG)
    arrays = rfexec.to_supervision(found)
    assert arrays["mask"].shape == (len(found), ROWS, COLUMNS) and arrays["mask"].dtype == bool
    for whole, mask in zip(arrays["mask"], found["mask"]):
        assert (whole == decoded(mask.counts, ROWS)).all()
        inside, (row, column) = mask.crop()
        assert inside.sum() == mask.area == whole.sum()
        assert (whole[row : row + inside.shape[0], column : column + inside.shape[1]] == inside).all()
        if mask.area > 0:  # no smaller rectangle would do
            assert inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any()
    assert "mask" not in rfexec.to_supervision(found, max_mask_bytes=len(found) * ROWS * COLUMNS - 1)
    assert "mask" not in rfexec.to_supervision(found[:0]) and rfexec.to_coco(found[:0]) == []
    assert "mask" not in net.boxes(IMAGE, head="yolov8", class_count=CLASSES).dtype.names


@pytest.mark.parametrize(
    "counts",
    [
        [12],  # nothing inside
        [0, 12],
        [0, 1, 11],
        [11, 1],
        [2, 3, 7],  # over the end of a column
        [1, 1, 2, 1, 1, 1, 5],
        [3, 1, 2, 6],
    ],
)
def test_run_lengths(counts):
    mask, wanted = rfexec.Mask((4, 3), counts), decoded(counts, 4)
    assert (mask.to_array() == wanted).all() and mask.area == wanted.sum()
    inside, (row, column) = mask.crop()
    places = np.argwhere(wanted)
    if len(places) == 0:
        assert inside.shape == (0, 0) and (row, column) == (0, 0)
        return
    assert [row, column] == places.min(0).tolist()
    assert [row + inside.shape[0] - 1, column + inside.shape[1] - 1] == places.max(0).tolist()
    assert mask == rfexec.Mask((4, 3), counts) != rfexec.Mask((3, 4), counts)


def test_a_large_image_takes_little_memory():
    side = 100_000
    counts = [side * 50_000 + 40_000] + [100, side - 100] * 50
    mask = rfexec.Mask((side, side), counts[:-1] + [side * side - sum(counts[:-1])])
    tracemalloc.start()
    inside, at = mask.crop()
    text = mask.to_rle()["counts"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert inside.all() and inside.shape == (100, 50) and at == (40_000, 50_000)
    assert peak < 200_000 and mask.area == 5000 and len(text) < 200


def test_the_budget_counts_masks(model, tmp_path):
    net = rfexec.open(model, (ROWS, COLUMNS))
    file = rfexec.File(tmp_path / "b.json", **SEG)
    plain = rfexec.File(tmp_path / "b.json", **{**SEG, "head": "yolov8"})
    most = [net.plan("64MiB", picture=IMAGE, output={"boxes": f}).picture_bytes for f in (file, plain)]
    assert most[0] - most[1] > 100_000 * PROTOTYPES * 4  # coefficients of all candidates
    with pytest.raises(rfexec.BudgetError) as failure:
        net.plan("1MiB", picture=IMAGE, output={"boxes": file})
    least = failure.value.needed_bytes
    assert len(net.boxes(IMAGE, **SEG, memory=least)) > 20
    with pytest.raises(rfexec.BudgetError):
        net.boxes(IMAGE, **SEG, memory=least - 1)


def test_refusals(model, tmp_path):
    net = rfexec.open(model, (ROWS, COLUMNS))
    with pytest.raises(rfexec.RefusedError, match="4 coefficients of masks, and output 2 has 5"):
        net.boxes(IMAGE, head="yolov8-seg", class_count=3)
    with pytest.raises(rfexec.UsageError, match="class_count is 0 to"):
        net.boxes(IMAGE, head="yolov8-seg", class_count=-1)
    with pytest.raises(rfexec.UsageError, match="answers"):
        net.run(IMAGE, output={"prototypes": rfexec.File(tmp_path / "no.npy", class_count=2)})
    assert list(tmp_path.iterdir()) == []


def test_prototypes_wait_in_the_spill_folder(model, tmp_path):
    net, seen = rfexec.open(model, (ROWS, COLUMNS)), set()
    found = net.boxes(IMAGE, **SEG, spill=tmp_path, observer=lambda step: seen.update(tmp_path.iterdir()))
    assert len(found) > 20 and len(seen) == 1 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("head, channels", [("yolo26-obb", 7), ("yolo26-seg", 6 + PROTOTYPES)])
def test_boxes_that_the_network_has_chosen(program, tmp_path, head, channels):
    kernel = np.random.default_rng(4).uniform(0, 30, (channels, 3, 1, 1)).astype(np.float32)
    kernel[2:4] *= 2  # sides, or the right and lower ends
    kernel[4:6] /= 60  # score and label
    kernel[6:] = (kernel[6:] - 15) / 60
    arrays = {"k": kernel, "p": kernel[-PROTOTYPES:] - 0.2, "s": np.array([1, channels, -1])}
    node = onnx.helper.make_node
    nodes = [
        node("Relu", ["image"], ["stem"]),
        node("Conv", ["stem", "k"], ["cells"], strides=[16, 16]),
        node("Reshape", ["cells", "s"], ["rows"]),
        node("Transpose", ["rows"], ["boxes"], perm=[0, 2, 1]),
        node("Conv", ["stem", "p"], ["prototypes"], strides=[4, 4]),
    ]
    path = save(tmp_path / "chosen.onnx", nodes, arrays)
    program("run", path, IMAGE, "--head", head, "--boxes", tmp_path / "b.json")
    wanted = json.loads((tmp_path / "b.json").read_text())["boxes"]
    found = rfexec.open(path, (ROWS, COLUMNS)).boxes(IMAGE, head=head)
    assert len(found) == len(wanted) > 5 and set(found.dtype.names) == set(wanted[0])
    for name in found.dtype.names:
        if name == "mask":
            assert [mask.counts.tolist() for mask in found[name]] == [box[name]["counts"] for box in wanted]
        else:
            assert (found[name] == np.array([box[name] for box in wanted], found.dtype[name].base)).all()
