"""Detectors that suppress by themselves: outputs whose size depends on data are those of the program's files."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
import rfexec
from conftest import random_image

ROWS, COLUMNS, STRIDE = 64, 96, 4
IMAGE = f"synthetic:{ROWS}x{COLUMNS}"
CELLS = ROWS // STRIDE * (COLUMNS // STRIDE)


def save(path, threshold, listed=False, size=("h", "w")):
    """Boxes and scores of two classes at every cell, NonMaxSuppression, and what it selects. listed: one output
    of 1 x N x 6."""
    rng = np.random.default_rng(3)
    boxes = np.tile(rng.uniform(-20, 20, (2, 3, 1, 1)), (2, 1, 1, 1)).astype(np.float32)  # moved by colours
    weights = {
        "kb": boxes,
        "bb": np.array([40, 30, 49, 41], np.float32),
        "ks": rng.uniform(-1, 1, (2, 3, 1, 1)).astype(np.float32),
        "list_b": np.array([1, 4, -1]),
        "list_s": np.array([1, 2, -1]),
        "most": np.array([1000]),
        "iou": np.array([0.5], np.float32),
        "score": np.array([threshold], np.float32),
        "zero": np.array([0]),
        "class": np.array(1),
        "cell": np.array(2),
        "both": np.array([1, 2]),
        "last": np.array([1]),
    }
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["image", "kb", "bb"], ["mb"], strides=[STRIDE, STRIDE]),
        node("Conv", ["image", "ks"], ["ms"], strides=[STRIDE, STRIDE]),
        node("Sigmoid", ["ms"], ["ps"]),
        node("Reshape", ["mb", "list_b"], ["rb"]),
        node("Reshape", ["ps", "list_s"], ["all_scores"]),
        node("Transpose", ["rb"], ["all_boxes"], perm=[0, 2, 1]),
        node("NonMaxSuppression", ["all_boxes", "all_scores", "most", "iou", "score"], ["chosen"]),
        node("Gather", ["chosen", "cell"], ["cells"], axis=1),
        node("Gather", ["chosen", "class"], ["labels"], axis=1),
        node("Gather", ["chosen", "both"], ["pairs"], axis=1),
        node("Squeeze", ["all_boxes", "zero"], ["b"]),
        node("Squeeze", ["all_scores", "zero"], ["s"]),
        node("Gather", ["b", "cells"], ["boxes"], axis=0),
        node("GatherND", ["s", "pairs"], ["scores"]),
    ]
    value = onnx.helper.make_tensor_value_info
    outputs = [
        value("boxes", onnx.TensorProto.FLOAT, ["n", 4]),
        value("scores", onnx.TensorProto.FLOAT, ["n"]),
        value("labels", onnx.TensorProto.INT64, ["n"]),
    ]
    if listed:
        nodes += [
            node("Cast", ["labels"], ["float_labels"], to=onnx.TensorProto.FLOAT),
            node("Unsqueeze", ["scores", "last"], ["column_s"]),
            node("Unsqueeze", ["float_labels", "last"], ["column_l"]),
            node("Concat", ["boxes", "column_s", "column_l"], ["rows"], axis=1),
            node("Unsqueeze", ["rows", "zero"], ["found"]),
        ]
        outputs = [value("found", onnx.TensorProto.FLOAT, [1, "n", 6])]
    arrays = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    image = value("image", onnx.TensorProto.FLOAT, [1, 3, *size])
    graph = onnx.helper.make_graph(nodes, "late", [image], outputs, arrays)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("late")
    return {
        "some": save(folder / "some.onnx", 0.5),
        "none": save(folder / "none.onnx", 2.0),
        "list": save(folder / "list.onnx", 0.5, True),
        "fixed": save(folder / "fixed.onnx", 0.5, size=(ROWS, COLUMNS)),
    }


def test_outputs_are_the_programs(program, models, tmp_path):
    program("run", models["some"], IMAGE, "-o", tmp_path / "p.npy")
    wanted = {name: np.load(tmp_path / f"p.{name}.npy") for name in ("boxes", "scores", "labels")}
    count = len(wanted["boxes"])
    assert 10 < count < 2 * CELLS and wanted["labels"].dtype == np.int64 and len(set(wanted["labels"])) == 2
    net = rfexec.open(models["some"], (ROWS, COLUMNS))
    assert [(info.shape, info.dtype) for info in net.outputs] == [
        ((None, 4), "float32"),
        ((None,), "float32"),
        ((None,), "int64"),
    ]
    model = rfexec.Model(models["some"])
    plan = model.plan((ROWS, COLUMNS), memory="32MiB", picture=IMAGE)
    for found in (
        net.run(IMAGE),
        net.run(IMAGE, memory="32MiB", threads=2),
        model.run(IMAGE, memory="32MiB"),
        plan.run(IMAGE),
        net.prepare(memory="32MiB").run(IMAGE),
    ):
        assert list(found) == list(wanted)
        for name, array in wanted.items():
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            assert found[name].tobytes() == array.tobytes()
    assert list(net.run(IMAGE, outputs=["labels"])) == ["labels"] and net.run(IMAGE, outputs=[]) == {}
    rest = net.run(IMAGE, output={"boxes": tmp_path / "q.npy"})
    assert list(rest) == ["scores", "labels"]
    assert (tmp_path / "q.npy").read_bytes() == (tmp_path / "p.boxes.npy").read_bytes()
    program("run", models["none"], IMAGE, "-o", tmp_path / "none.npy")
    none = rfexec.open(models["none"], (ROWS, COLUMNS)).run(IMAGE)
    assert none["boxes"].shape == (0, 4) and none["labels"].shape == (0,)


def test_arrays(models):
    image = random_image(ROWS, COLUMNS)
    session = rfexec.InferenceSession(models["some"], memory="32MiB")
    assert [output.name for output in session.get_outputs()] == ["boxes", "scores", "labels"]
    theirs = pytest.importorskip("onnxruntime").InferenceSession(models["some"]).run(None, {"image": image})
    with rfexec.open(models["some"]) as net:  # no size yet
        assert net.outputs[0].shape == (None, 4)
        found = net.run(image)
    for mine, other, wanted in zip(session.run(None, {"image": image}), found.values(), theirs):
        assert mine.tobytes() == other.tobytes() and mine.dtype == wanted.dtype
        assert np.allclose(mine, wanted, atol=1e-4) and len(wanted) > 10
    with rfexec.open(models["some"], (ROWS, COLUMNS)).prepare(memory="32MiB") as runner:
        for seed in (1, 2):  # other sizes of the same outputs
            image = random_image(ROWS, COLUMNS, seed=seed)
            again = runner.run(image)
            for name, array in rfexec.open(models["some"], (ROWS, COLUMNS)).run(image).items():
                assert again[name].tobytes() == array.tobytes()


def test_threads_share_a_plan(models):
    images = [random_image(ROWS, COLUMNS, seed=seed) for seed in range(8)]
    net = rfexec.open(models["some"], (ROWS, COLUMNS))
    wanted = [net.run(image) for image in images]
    with rfexec.Model(models["some"]).plan((ROWS, COLUMNS), threads=1) as plan, ThreadPoolExecutor(3) as pool:
        for found, want in zip(pool.map(plan.run, images), wanted):
            assert all(found[name].tobytes() == array.tobytes() for name, array in want.items())


@pytest.mark.parametrize("name", ["some", "list", "fixed"])
def test_boxes_are_the_programs(program, models, tmp_path, name):
    for end in ("json", "coco.json"):
        program("run", models[name], IMAGE, "--boxes", tmp_path / f"b.{end}", "--score", "0.55")
    wanted = json.loads((tmp_path / "b.json").read_text())["boxes"]
    net = rfexec.open(models[name], None if name == "fixed" else (ROWS, COLUMNS))
    for memory in (None, "32MiB"):
        found = net.boxes(IMAGE, score=0.55, memory=memory)
        assert len(found) == len(wanted) > 5
        for member in found.dtype.names:
            assert (found[member] == np.array([box[member] for box in wanted], found.dtype[member].base)).all()
    coco = json.loads((tmp_path / "b.coco.json").read_text())
    assert [box["category_id"] for box in rfexec.to_coco(found)] == [box["category_id"] for box in coco]
    assert len(net.boxes(IMAGE, score=1.0)) == 0 and len(net.boxes(random_image(ROWS, COLUMNS), score=0)) > 5


def test_the_budget_counts_late_nodes(models, tmp_path):
    net = rfexec.open(models["some"], (ROWS, COLUMNS))
    sizes = [net.plan("64MiB", output={"boxes": rfexec.File(tmp_path / "b.npy")}).picture_bytes]
    sizes.append(net.plan("64MiB").picture_bytes)
    cut = CELLS * 6 * 4
    assert sizes[0] == sizes[1] > (8 << 20) + 3 * cut  # .npy files count in every plan
    assert sizes[1] < (8 << 20) + 3 * cut + (1 << 20)
    with pytest.raises(rfexec.BudgetError) as failure:
        net.plan("1MiB")
    least = failure.value.needed_bytes
    wanted = net.run(IMAGE)
    assert net.run(random_image(ROWS, COLUMNS), memory=least).keys() == wanted.keys()
    with pytest.raises(rfexec.BudgetError):
        net.run(random_image(ROWS, COLUMNS), memory=least - 1)


def test_refusals(models, tmp_path):
    net, image = rfexec.open(models["some"], (ROWS, COLUMNS)), random_image(ROWS, COLUMNS)
    with pytest.raises(rfexec.UsageError, match="takes no array"):
        net.run(image, out={"boxes": np.zeros((10, 4), np.float32)})
    with pytest.raises(rfexec.UsageError, match="one by one"):
        net.run(np.concatenate([image, image]))
    with pytest.raises(rfexec.UsageError, match="not returned too"):
        net.run(image, output={"boxes": tmp_path / "b.npy"}, outputs=["boxes"])
    with pytest.raises(rfexec.UsageError, match="depends on data"):
        net.outputs[0].nbytes
    with pytest.raises(rfexec.UsageError, match="no map"):
        net.part(1, 1)
    with pytest.raises(rfexec.RefusedError, match="have no parts"):
        net.rounds()
    with pytest.raises(rfexec.UsageError):
        next(net.bands(image))
    with pytest.raises(rfexec.RefusedError, match="depend on data"):
        net.run(image, mask=models["some"], outputs=["boxes"])
    with pytest.raises(rfexec.Error, match="three dimensions"):
        net.run(image, output={"scores": rfexec.File(tmp_path / "b.json")})
    with pytest.raises(rfexec.Error):
        net.run(image, output={"boxes": rfexec.File(tmp_path / "b.tif")})
    with pytest.raises(rfexec.SystemFailure, match="nowhere"):
        net.run(image, output={"boxes": tmp_path / "nowhere" / "b.npy"})
    with pytest.raises(rfexec.RefusedError, match="no padding"):
        rfexec.open(models["some"], (ROWS - 1, COLUMNS), pad_to=4)
    joined = rfexec.File(tmp_path / "b.json", answer_memory=3000)
    with pytest.raises(rfexec.BudgetError, match="3000 are allowed"):
        net._with_joined_heads().run(image, output={"detections": joined}, outputs=[])
    assert list(tmp_path.iterdir()) == []


def test_stopped_runs_leave_nothing(models, tmp_path):
    net = rfexec.open(models["some"], (ROWS, COLUMNS))
    (tmp_path / "b.npy").write_text("as it was")

    def stop(done, total):
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        net.run(IMAGE, progress=stop, output={"boxes": tmp_path / "b.npy"})
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("b.npy", "as it was")]
    assert len(net.run(IMAGE)["boxes"]) > 10
