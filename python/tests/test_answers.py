"""Answers from Python: those of the program, and of the arrays."""

import json

import numpy as np
import onnx
import pytest
import rfexec
from conftest import TOP, random_image

MODEL = TOP / "data" / "defect_net.onnx"


def test_regions_are_the_programs(program, tmp_path):
    program("run", MODEL, "synthetic:320x256", "--regions", tmp_path / "r.geojson", "--threshold", "0.02")
    net = rfexec.open(MODEL, (320, 256))
    found = net.regions("synthetic:320x256", threshold=0.02, memory="32MiB")
    assert found == json.loads((tmp_path / "r.geojson").read_text())
    assert len(found["features"]) > 5


def test_regions_cover_what_is_above(tmp_path):
    net, image = rfexec.open(MODEL, (96, 128)), random_image(96, 128)
    map = net.run(image)["defects"][0]
    limits = [float(np.quantile(channel, 0.7)) for channel in map]
    found = net.regions(image, threshold=limits, min_area=1)["features"]
    for label, limit in enumerate(limits):
        pixels = sum(f["properties"]["pixels"] for f in found if f["properties"]["label"] == label)
        assert pixels == (map[label] > np.float32(limit)).sum()
    some = net.regions(image, threshold=limits, min_area=3, corners=True)["features"]
    assert all(f["properties"]["pixels"] >= 3 for f in some)


def test_boxes_are_those_of_the_array(program, tmp_path):
    net = rfexec.open("yolov8n", (160, 192))
    image = random_image(160, 192)
    cells = net.run(image)["output0"][0]
    found = net.boxes(image, score=0.3, iou=1.0)  # nothing is suppressed
    best = cells[4:].max(0)
    assert len(found) == (best > np.float32(0.3)).sum() > 10
    assert (np.diff(found["score"]) <= 0).all()
    assert (found["score"] == best[found["index"]]).all()
    assert (found["label"] == cells[4:].argmax(0)[found["index"]]).all()
    x, y, w, h = cells[:4, found["index"]]
    assert (found["box"] == np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)).all()
    fewer = net.boxes(image, score=0.3, memory="32MiB", threads=2)
    assert 0 < len(fewer) < len(found)
    program("run", "yolov8n", "synthetic:160x192", "--boxes", tmp_path / "b.json")
    program_boxes = json.loads((tmp_path / "b.json").read_text())["boxes"]
    assert net.boxes("synthetic:160x192")["index"].tolist() == [b["index"] for b in program_boxes]


def test_boxes_with_an_angle_are_the_programs(program, tmp_path):
    net = rfexec.open("yolov8n", (160, 192))
    program("run", "yolov8n", "synthetic:160x192", "--boxes", tmp_path / "b.json", "--head", "yolov8-obb")
    wanted = json.loads((tmp_path / "b.json").read_text())["boxes"]
    found = net.boxes("synthetic:160x192", head="yolov8-obb")
    assert len(found) == len(wanted) > 20
    for name in found.dtype.names:
        assert (found[name] == np.array([box[name] for box in wanted], found.dtype[name].base)).all()
    cells = net.run("synthetic:160x192")["output0"][0]
    assert (found["angle"] == cells[-1, found["index"]]).all() and (found["size"].T == cells[2:4, found["index"]]).all()


def text_net(path):
    """A network whose output is its input."""
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 1, "h", "w"]) for n in "xy"]
    kernel = onnx.numpy_helper.from_array(np.ones((1, 1, 1, 1), np.float32), "k")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["x", "k"], ["y"])], "text", values[:1], values[1:], [kernel]
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)


def test_text_has_the_usual_score(tmp_path):
    text_net(tmp_path / "text.onnx")
    map = np.zeros((1, 1, 48, 64), np.float32)
    map[0, 0, 10:20, 5:25] = 0.7
    map[0, 0, 10:20, 35:55] = 0.5  # above the threshold of 0.3, below the score of 0.6
    net = rfexec.open(tmp_path / "text.onnx", (48, 64))
    for score, count in (({}, 1), ({"score": 0.4}, 2), ({"score": 0.8}, 0)):
        net.run(map, output=rfexec.File(tmp_path / "found.text.json", **score))
        assert len(json.loads((tmp_path / "found.text.json").read_text())["boxes"]) == count


def yunet(path):
    """A network of YuNet's outputs: linear functions of every 8th, 16th and 32nd pixel."""
    rng, nodes, weights, outputs = np.random.default_rng(1), [], [], []
    for part, channels in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)):
        for stride in (8, 16, 32):
            name = f"{part}_{stride}"
            kernel = rng.uniform(-0.5, 0.5, (channels, 3, 1, 1)).astype(np.float32)
            weights.append(onnx.numpy_helper.from_array(kernel, "k" + name))
            weights.append(onnx.numpy_helper.from_array(np.array([1, -1, channels]), "s" + name))
            nodes.append(onnx.helper.make_node("Conv", ["image", "k" + name], ["m" + name], strides=[stride] * 2))
            nodes.append(onnx.helper.make_node("Transpose", ["m" + name], ["t" + name], perm=[0, 2, 3, 1]))
            raw = part in ("cls", "obj")
            nodes.append(onnx.helper.make_node("Reshape", ["t" + name, "s" + name], ["r" * raw + name]))
            if raw:
                nodes.append(onnx.helper.make_node("Sigmoid", ["r" + name], [name]))
            outputs.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    image = onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, "h", "w"])
    graph = onnx.helper.make_graph(nodes, "yunet", [image], outputs, weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)


@pytest.mark.parametrize("size", [None, (96, 160)])
def test_outputs_of_a_head_are_joined(program, tmp_path, size):
    yunet(tmp_path / "yunet.onnx")
    options = ("--score", "0.5", "--iou", "0.2", "--boxes", tmp_path / "b.json")
    program("run", tmp_path / "yunet.onnx", "synthetic:96x160", *options)
    wanted = json.loads((tmp_path / "b.json").read_text())["boxes"]
    with rfexec.open(tmp_path / "yunet.onnx", size) as net:
        found = net.boxes("synthetic:96x160", score=0.5, iou=0.2, memory="32MiB")
        assert len(found) == len(wanted) > 20 and len(net.outputs) == 12
        for name in ("box", "score", "label", "index", "points"):
            assert (found[name] == np.array([box[name] for box in wanted], found.dtype[name].base)).all()
        none = net.boxes("synthetic:96x160", score=1.0)
        assert len(none) == 0 and none["points"].shape == (0, 5, 2)
        with pytest.raises(rfexec.RefusedError, match="no known head"):
            net.boxes("synthetic:96x160", output="cls_8")
    with pytest.raises(rfexec.UsageError, match="closed"):
        net.boxes("synthetic:96x160")


def test_key_points(program, tmp_path):
    rng, channels = np.random.default_rng(2), 4 + 1 + 3 * 3
    kernel = rng.uniform(-1, 1, (channels, 3, 1, 1)).astype(np.float32)
    kernel[4] = 0.2  # the score, below 1
    weights = [
        onnx.numpy_helper.from_array(kernel, "k"),
        onnx.numpy_helper.from_array(np.array([1, channels, -1]), "s"),
    ]
    nodes = [
        onnx.helper.make_node("Conv", ["image", "k"], ["cells"], strides=[8, 8]),
        onnx.helper.make_node("Reshape", ["cells", "s"], ["boxes"]),
    ]
    image, boxes = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("image", [1, 3, "h", "w"]), ("boxes", None))
    )
    graph = onnx.helper.make_graph(nodes, "pose", [image], [boxes], weights)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8),
        tmp_path / "pose.onnx",
    )
    net, head = rfexec.open(tmp_path / "pose.onnx", (96, 160)), "yolov8-pose"
    found = net.boxes("synthetic:96x160", head=head)
    program("run", tmp_path / "pose.onnx", "synthetic:96x160", "--head", head, "--boxes", tmp_path / "p.json")
    wanted = json.loads((tmp_path / "p.json").read_text())["boxes"]
    assert found["points"].shape == (len(wanted), 3, 3) and len(wanted) > 5
    assert (found["points"] == np.array([box["points"] for box in wanted], np.float32)).all()
    assert net.boxes("synthetic:96x160", head=head, score=1.0)["points"].shape == (0, 3, 3)
    with pytest.raises(rfexec.RefusedError, match="prototypes of a second output"):
        rfexec.open("yolov8n", (96, 160)).boxes("synthetic:96x160", head="yolov8-seg")


def is_peak(map, y, x, distance):
    near = map[max(0, y - distance) : y + distance + 1, max(0, x - distance) : x + distance + 1]
    return near.max() == map[y, x]


def test_points_are_the_peaks_of_the_array(program, tmp_path):
    net, image = rfexec.open(MODEL, (96, 128)), random_image(96, 128)
    map = net.run(image)["defects"][0]
    limits = [float(np.quantile(channel, 0.5)) for channel in map]
    found = net.points(image, threshold=limits, distance=2, memory="32MiB")
    wanted = [
        (8.0 * x + 0.5, 8.0 * y + 0.5, map[c, y, x], c)
        for y, x, c in np.ndindex(*map.shape[1:], len(map))
        if map[c, y, x] > np.float32(limits[c]) and is_peak(map[c], y, x, 2)
    ]
    assert found.tolist() == np.array(wanted, found.dtype).tolist() and len(wanted) > 5
    assert len(net.points(image, threshold=limits)) > len(found)  # within 1 pixel
    assert len(net.points(image, threshold=2.0)) == 0
    program("run", MODEL, "synthetic:96x128", "--points", tmp_path / "p.csv", "--threshold", "0.01")
    net.run("synthetic:96x128", output=rfexec.File(tmp_path / "q.points.csv", threshold=0.01))
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.points.csv").read_bytes()


def test_summary_counts_the_array():
    net, image = rfexec.open(MODEL, (96, 128)), random_image(96, 128)
    map = net.run(image)["defects"][0]
    found = net.summary(image, threshold=float(np.median(map)))
    assert found["pixels"] == map[0].size and found["area"] == 64 * map[0].size
    for channel, entry in zip(map, found["classes"]):
        assert entry["pixels"] == (channel > np.median(map)).sum()
        assert entry["smallest"] == channel.min() and entry["largest"] == channel.max()
        assert entry["mean"] == pytest.approx(float(channel.mean()))
    largest = net.summary(image)["classes"]
    assert [c["pixels"] for c in largest] == np.bincount(map.argmax(0).ravel(), minlength=3).tolist()


def test_refusals():
    net = rfexec.open(MODEL, (64, 64))
    with pytest.raises(rfexec.UsageError, match="one for each"):
        net.regions(random_image(64, 64), threshold=[0.5, 0.2])
    with pytest.raises(rfexec.UsageError, match="distance is 0 to"):
        net.points(random_image(64, 64), threshold=0.5, distance=-1)
    with pytest.raises(rfexec.UsageError, match="one for each"):
        net.summary(random_image(64, 64), threshold=[0.5, 0.2])
    with pytest.raises(rfexec.UsageError, match="coordinates"):
        net.regions(random_image(64, 64), threshold=0.5, coordinates="miles")
    with pytest.raises(rfexec.RefusedError, match="three dimensions"):
        net.boxes(random_image(64, 64))
    detector = rfexec.open("yolov8n", (96, 96))
    with pytest.raises(rfexec.BudgetError, match="more than 3"):
        detector.boxes(random_image(96, 96), score=0.0, max_boxes=3)
    with pytest.raises(rfexec.UsageError, match="share"):
        detector.boxes(random_image(96, 96), iou=2.0)
    with pytest.raises(rfexec.UsageError, match="answers"):
        detector.run(random_image(96, 96), output=rfexec.File("no.npy", score=0.5))


def test_boxes_for_other_programs(program, tmp_path):
    net = rfexec.open("yolov8n", (160, 192))
    found = net.boxes("synthetic:160x192")
    program("run", "yolov8n", "synthetic:160x192", "--boxes", tmp_path / "b.coco.json")
    wanted = json.loads((tmp_path / "b.coco.json").read_text())
    coco = rfexec.to_coco(found, image_id=7)
    assert len(coco) == len(wanted) > 5
    for mine, theirs in zip(coco, wanted):
        assert mine["image_id"] == 7 and mine["category_id"] == theirs["category_id"]
        assert np.float32(mine["score"]) == np.float32(theirs["score"])
        assert np.allclose(mine["bbox"], theirs["bbox"], rtol=1e-6, atol=0)
    json.dumps(coco)
    arrays = rfexec.to_supervision(found)
    assert arrays["xyxy"].shape == (len(found), 4) and arrays["xyxy"].dtype == np.float32
    assert (arrays["xyxy"] == found["box"]).all() and (arrays["confidence"] == found["score"]).all()
    assert (arrays["class_id"] == found["label"]).all()
    none = rfexec.to_supervision(found[:0])
    assert none["xyxy"].shape == (0, 4) and rfexec.to_coco(found[:0]) == []
    with pytest.raises(rfexec.UsageError, match="Network.boxes"):
        rfexec.to_coco(np.zeros((3, 4)))


HEAD = {"outputs": [{"names": ["output0"], "axes": "v n", "values": ["box", "scores"]}], "decode": "centre"}


def test_head_files(program, tmp_path):
    head = tmp_path / "head.json"
    head.write_text(json.dumps(HEAD))
    program("run", "yolov8n", "synthetic:160x192", "--boxes", tmp_path / "b.json", "--head", head)
    wanted = json.loads((tmp_path / "b.json").read_text())["boxes"]
    net = rfexec.open("yolov8n", (160, 192))
    found = net.boxes("synthetic:160x192", head=head, memory="64MiB")
    assert found["index"].tolist() == [b["index"] for b in wanted] and len(wanted) > 5
    assert (found["box"] == np.float32([b["box"] for b in wanted])).all()
    assert (net.boxes("synthetic:160x192")["box"] == found["box"]).all()  # the head that rfexec knows
    clipped = tmp_path / "clip.json"
    clipped.write_text(json.dumps({**HEAD, "clip": True}))
    inside = net.boxes("synthetic:160x192", head=str(clipped))["box"]
    assert inside.min() >= 0 and inside[:, 2].max() <= 192 and inside[:, 3].max() <= 160
    other = tmp_path / "a YOLOv8 OBB head, 7 points with scores.json"  # no word of a name counts
    other.write_text(json.dumps(HEAD))
    assert (net.boxes("synthetic:160x192", head=other) == found).all()
    clipped.write_text("{}")
    with pytest.raises(rfexec.RefusedError, match="clip.json"):
        rfexec.open("yolov8n", (160, 192)).boxes("synthetic:160x192", head=clipped)
    with pytest.raises(rfexec.UsageError, match="names the outputs"):
        net.boxes("synthetic:160x192", "output0", head=head)
    with pytest.raises(rfexec.UsageError, match="when the network is loaded"):
        net.run("synthetic:160x192", output=rfexec.File(tmp_path / "no.json", head="head.json"))


def test_areas_and_bins(program, tmp_path):
    areas = tmp_path / "areas.geojson"
    ring = [[0, 0], [200, 0], [200, 100], [0, 100], [0, 0]]
    areas.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    program("run", MODEL, "synthetic:320x256", "--summary", tmp_path / "s.json", "--within", areas, "--bins", "5,0,1")
    net = rfexec.open(MODEL, (320, 256))
    found = net.summary("synthetic:320x256", within=areas, bins=(5, 0, 1), memory="64MiB")
    assert found == json.loads((tmp_path / "s.json").read_text())
    assert len(found["within"]) == 1 and len(found["bins"]) == 6
    for wrong in ((0, 0, 1), (5, 1, 1), (70000, 0, 1), (5, 0, float("inf"))):
        with pytest.raises(rfexec.UsageError, match="bins"):
            net.summary("synthetic:320x256", bins=wrong)
    with pytest.raises(rfexec.SystemFailure, match="none.geojson"):
        net.summary("synthetic:320x256", within=tmp_path / "none.geojson")


def test_quantiles(program, tmp_path):
    program("run", MODEL, "synthetic:320x256", "--summary", tmp_path / "s.json", "--quantiles", "0.05,0.5")
    net = rfexec.open(MODEL, (320, 256))
    found = net.summary("synthetic:320x256", quantiles=(0.05, 0.5), memory="64MiB")
    assert found == json.loads((tmp_path / "s.json").read_text())
    values = net.run("synthetic:320x256")["defects"].astype(float)
    for one in found["classes"]:
        assert one["quantiles"] == list(np.quantile(values[:, one["label"]], (0.05, 0.5)))
    with pytest.raises(rfexec.UsageError, match="rising"):
        net.summary("synthetic:320x256", quantiles=(0.5, 0.05))


def test_quantiles_of_areas(program, tmp_path):
    ring = [[16, 32], [112, 32], [112, 240], [16, 240], [16, 32]]
    areas = tmp_path / "areas.geojson"
    areas.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    options = ("--within", areas, "--quantiles", "0.05,0.5")
    program("run", MODEL, "synthetic:320x256", "--summary", tmp_path / "s.json", *options)
    net = rfexec.open(MODEL, (320, 256))
    found = net.summary("synthetic:320x256", within=areas, quantiles=(0.05, 0.5), memory="64MiB")
    assert found == json.loads((tmp_path / "s.json").read_text())
    values = net.run("synthetic:320x256")["defects"].astype(float)
    step = 320 // values.shape[2]
    inside = values[:, :, 32 // step : 240 // step, 16 // step : 112 // step]
    assert found["within"][0]["pixels"] == inside[0, 0].size
    for whole, one in zip(found["classes"], found["within"][0]["classes"]):
        assert whole["quantiles"] == list(np.quantile(values[:, one["label"]], (0.05, 0.5)))
        assert one["quantiles"] == list(np.quantile(inside[:, one["label"]], (0.05, 0.5)))
    with pytest.raises(rfexec.BudgetError, match="2 quantiles of 3 channels in 1 areas"):
        file = rfexec.File(tmp_path / "no.summary.json", within=areas, quantiles=(0.1, 0.5), answer_memory=20000)
        net.run("synthetic:320x256", output=file, memory="64MiB")


def test_simplified_regions(program, tmp_path):
    options = ("--threshold", "0.02", "--simplify", "0.5")
    program("run", MODEL, "synthetic:320x256", "--regions", tmp_path / "r.geojson", *options)
    net = rfexec.open(MODEL, (320, 256))
    found = net.regions("synthetic:320x256", threshold=0.02, simplify=0.5)
    assert found == json.loads((tmp_path / "r.geojson").read_text())
    assert found != net.regions("synthetic:320x256", threshold=0.02)
    with pytest.raises(rfexec.UsageError, match="0 to 0.7"):
        net.regions("synthetic:320x256", threshold=0.02, simplify=0.8)


def test_scores_decay(program, tmp_path):
    program("run", "yolov8n", "synthetic:160x192", "--boxes", tmp_path / "b.json", "--soft-nms", "--score", "0.3")
    wanted = json.loads((tmp_path / "b.json").read_text())["boxes"]
    found = rfexec.open("yolov8n", (160, 192)).boxes("synthetic:160x192", soft_nms=True, score=0.3)
    assert found["index"].tolist() == [b["index"] for b in wanted]
    assert (found["score"] == np.float32([b["score"] for b in wanted])).all() and len(found) > 5
