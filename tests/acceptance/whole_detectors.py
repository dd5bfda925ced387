#!/usr/bin/env python3
"""Whole detectors, exported with their suppression: rfexec's outputs beside those of ONNX Runtime.

    whole_detectors.py [--folder DIR] [--sizes HxW,...] PROGRAM [NAME ...]

NAMEs: ssd300, ssdlite, retinanet and fcos of torchvision (TorchScript export; torch.export cannot trace them),
yolov8n and yolo11n of Ultralytics (`nms=True`). Weights are drawn; the last convolutions are scaled so that
there are boxes of all sizes and scores. For each network and size, which the file fixes:
1. the late nodes are exact: the rest of the file is cut out as a file of its own, and ONNX Runtime gives the
   same outputs on the cut tensors that rfexec wrote (--dump): same number and order, 0 elements differ. Where
   the rest computes exponentials (retinanet), which ONNX Runtime rounds differently, corners may differ by
   1e-3 pixels;
2. end to end, each of rfexec's boxes is one of ONNX Runtime's on the same file and the other way round, within
   0.5 pixels and 1e-3 of a score, but for 2 in 100, which stand at a threshold;
3. `--boxes` has the rows of the outputs above --score;
4. all files have the same bytes untiled, in bands, in tiles, with the least budget, with 1 to 3 threads, and when 1,
   2, 3 and 5 parts are merged (yolo11n has no parts: its attention is computed with whole tensors).

Needs torch, torchvision, onnx, onnxruntime and ultralytics (tests/acceptance/detectors.txt). Where one is
missing it says so, and nothing is compared. The exit code is 1 when anything was missed; every miss is printed.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import warnings

import detectors

NEEDED = ("torch", "torchvision", "onnx", "onnxruntime", "ultralytics")
SIZES = "320x320,288x384,640x480,416x512,800x608"
TORCHVISION = ("ssd300", "ssdlite", "retinanet", "fcos")
ULTRALYTICS = ("yolov8n", "yolo11n")
SCORE = 0.3
PIXELS, SCORES, SHARE = 0.5, 1e-3, 0.02


def export_torchvision(name, shape, path):
    import export_anchor_heads
    import torch
    from drawn_networks import drawn_image, set_norms

    torch.manual_seed(7)
    model, wanted, _ = export_anchor_heads.NETWORKS[name]()
    model.transform.fixed_size = (shape[1], shape[0])  # as the image: it is not resized
    image = torch.from_numpy(drawn_image(*shape))
    mean, std = (torch.tensor(values)[:, None, None] for values in (model.transform.image_mean, model.transform.image_std))
    seen = (torch.cat([image, image.flip(3)]) - mean) / std  # two, so that a map of one pixel has statistics
    with torch.no_grad():
        net = export_anchor_heads.Heads(model)
        set_norms(net, seen)
        export_anchor_heads.spread_last(net, seen, wanted)
        model.eval()
    torch.onnx.export(model, ([image[0]],), str(path), input_names=["image"],
                      output_names=["boxes", "scores", "labels"], dynamo=False, opset_version=17)


def export_ultralytics(name, shape, path):
    import export_detectors
    import torch
    from drawn_networks import drawn_image, set_norms

    torch.manual_seed(7)
    image = torch.from_numpy(drawn_image(*shape))
    wrapped = export_detectors.YOLO(export_detectors.NETWORKS[name])
    with torch.no_grad():
        set_norms(wrapped.model, image)
        export_detectors.spread_heads(wrapped.model, image)
    wrapped.model.yaml_file = str(path.with_suffix(".yaml"))
    wrapped.model.pt_path = str(path.with_suffix(".pt"))
    made = wrapped.export(format="onnx", nms=True, imgsz=shape, opset=17, simplify=False, device="cpu")
    os.replace(made, path)


def export(name, shape, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in TORCHVISION:
            export_torchvision(name, shape, path)
        else:
            export_ultralytics(name, shape, path)


def ort_outputs(model, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    if not isinstance(inputs, dict):
        first = session.get_inputs()[0]
        inputs = {first.name: inputs if len(first.shape) == 4 else inputs[0]}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs)))


def tail_of(model, cuts):
    """The nodes behind the cut tensors, as bytes of a model."""
    import onnx

    whole = onnx.load(str(model))
    graph = whole.graph
    made = {output: node for node in graph.node for output in node.output}
    held = {tensor.name: tensor for tensor in graph.initializer}
    nodes, tensors, seen, reached = [], [], set(), set()

    def used(node):
        names = list(node.input)
        for attribute in node.attribute:
            for inner in attribute.g.node:
                names += used(inner)
        return names

    def need(name):
        stack = [(name, False)]
        while stack:
            name, done = stack.pop()
            if done:
                nodes.append(made[name])
            elif name in cuts or name in seen or name == "":
                continue
            elif name in held:
                seen.add(name)
                tensors.append(held[name])
            elif name not in made:  # the image, or a name inside a branch
                reached.update(value.name for value in graph.input if value.name == name)
            elif not any(output in seen for output in made[name].output):
                seen.update(made[name].output)
                stack.append((name, True))
                stack += [(below, False) for below in used(made[name])]

    for output in graph.output:
        need(output.name)
    types = {"float32": onnx.TensorProto.FLOAT, "int64": onnx.TensorProto.INT64, "bool": onnx.TensorProto.BOOL}
    inputs = [onnx.helper.make_tensor_value_info(name, types[cut["type"]], cut["shape"])
              for name, cut in cuts.items()]
    inputs += [value for value in graph.input if value.name in reached]  # of whose size some nodes make constants
    rest = onnx.helper.make_graph(nodes, "rest", inputs, list(graph.output), tensors)
    return onnx.helper.make_model(rest, opset_imports=list(whole.opset_import),
                                  ir_version=whole.ir_version).SerializeToString(), nodes, reached


def rows_of(outputs):
    """Rows of left, top, right, bottom, score, label."""
    import numpy as np

    if len(outputs) == 1:
        rows = next(iter(outputs.values()))[0]
        return rows[rows[:, 4] > 0]
    return np.concatenate([outputs["boxes"], outputs["scores"][:, None], outputs["labels"][:, None]], 1)


def unmatched(left, right):
    """How many rows of `left` have no row of the same label nearby in `right`."""
    import numpy as np

    misses = 0
    for row in left:
        near = (np.abs(right[:, :4] - row[:4]).max(1) <= PIXELS) & (np.abs(right[:, 4] - row[4]) <= SCORES)
        misses += not np.any(near & (right[:, 5] == row[5]))
    return misses


def check_late(name, model, image, cuts, ours):
    """Compares with ONNX Runtime on the tensors that rfexec wrote."""
    import numpy as np

    rest, nodes, reached = tail_of(model, {cut["name"]: cut for cut in cuts})
    given = {cut["name"]: np.load(image.parent / f"cut{k}.npy") for k, cut in enumerate(cuts)}
    for key in reached:
        whole = np.load(image)
        given[key] = whole if name.startswith("yolo") else whole[0]
    theirs = ort_outputs(rest, given)
    inexact = any(node.op_type == "Exp" for node in nodes)
    right, differing = True, 0
    for key, value in theirs.items():
        mine = ours[key]
        right &= mine.shape == value.shape and mine.dtype == value.dtype
        if not right:
            break
        differing += int((mine != value).sum())
        right &= bool(np.abs(mine.astype(float) - value).max(initial=0) <= (1e-3 if inexact else 0))
    words = f"{len(rows_of(ours))} rows, {differing} elements differ on the same cut tensors"
    return detectors.say(right, name, f"late nodes: {words}{' (exponentials)' if inexact else ''}")


def check_whole(name, model, image, ours):
    import numpy as np

    mine, theirs = rows_of(ours), rows_of(ort_outputs(str(model), np.load(image)))
    misses = unmatched(mine, theirs) + unmatched(theirs, mine)
    right = len(mine) > 0 and misses <= SHARE * (len(mine) + len(theirs))
    return detectors.say(right, name, f"end to end: {len(mine)} boxes, ONNX Runtime has {len(theirs)}, "
                                      f"{misses} without a counterpart")


def check_boxes(name, path, ours):
    import numpy as np

    rows = rows_of(ours).astype(np.float32)
    rows = rows[rows[:, 4] > np.float32(SCORE)]
    listed = json.loads(path.read_text())["boxes"]
    found = np.array([[*box["box"], box["score"], box["label"]] for box in listed], np.float32).reshape(-1, 6)
    order = np.argsort(-rows[:, 4], kind="stable")
    return detectors.say(np.array_equal(found, rows[order]), name, f"--boxes: {len(found)} above {SCORE}")


def check_plans(name, program, model, image, work, asked):
    """The same bytes under every plan."""
    first = {path.name: path.read_bytes() for path in work.glob("out*")}
    planned = detectors.call(program, "plan", model, image, "--for-output", "x.npy", "--boxes", "x.json",
                             "--memory", 1, "--json")
    least = json.loads(planned[1])["smallest_bytes"]
    plans = [("--untiled", "--threads", 1), ("--untiled", "--threads", 3), ("--bands", 32, "--threads", 2),
             ("--tiles", "2x3", "--threads", 2), ("--memory", least)]
    wrong = []
    for plan in plans:
        code, _, words = detectors.call(program, "run", model, image, *asked, *plan)
        if code != 0 or any((work / file).read_bytes() != data for file, data in first.items()):
            wrong.append(" ".join(map(str, plan)) + ": " + words[-200:])
    return detectors.say(not wrong, name, "; ".join(wrong) or f"same bytes under {len(plans)} plans, the least in "
                                                              f"{least / 2**20:.1f} MiB")


def check_parts(name, program, model, image, work):
    if name.startswith("yolo11n"):
        code, _, words = detectors.call(program, "run", model, image, "--part", "1/2", "-o", work / "no.npy")
        return detectors.say(code == 3 and "has no parts" in words, name, "parts are refused, as a node sees all of a map")
    wrong = []
    merged = [(work / "merged.npy",), (work / "merged.json", "--score", SCORE)]
    files = {path: work / path.name.replace("out", "merged") for path in work.glob("out*") if "detections" not in path.name}
    for count in (1, 2, 3, 5):
        for path in files.values():
            path.unlink(missing_ok=True)
        words = detectors.results_of_parts(program, model, image, count, merged, work)
        if words or any(path.read_bytes() != other.read_bytes() for path, other in files.items()):
            wrong.append(f"{count} parts: {words or 'other files'}")
    return detectors.say(not wrong, name, "; ".join(wrong) or f"the same {len(files)} files of 1, 2, 3 and 5 parts")


def compare(program, model, shape, work):
    import numpy as np
    from drawn_networks import drawn_image

    name, image = model.stem, work / "image.npy"
    np.save(image, drawn_image(*shape))
    for old in [*work.glob("out*"), *work.glob("cut*")]:
        old.unlink()
    code, planned, words = detectors.call(program, "plan", model, "--json")
    if code != 0:
        return detectors.say(False, name, words)
    cuts = json.loads(planned)["plan"]["late"]["cut_tensors"]
    dumps = [word for k, cut in enumerate(cuts) for word in ("--dump", f"{cut['name']}={work / f'cut{k}.npy'}")]
    asked = ["-o", work / "out.npy", "--boxes", work / "out.json", "--score", SCORE]
    code, _, words = detectors.call(program, "run", model, image, *asked, *dumps)
    if code != 0:
        return detectors.say(False, name, words)
    files = {path.name.split(".")[1]: path for path in work.glob("out*.npy")}
    files.pop("detections", None)
    ours = {"output0" if key == "npy" else key: np.load(path) for key, path in files.items()}
    right = check_late(name, model, image, cuts, ours)
    right &= check_whole(name, model, image, ours)
    right &= check_boxes(name, work / "out.json", ours)
    right &= check_parts(name, program, model, image, work)
    return right & check_plans(name, program, model, image, work, asked)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args = detectors.begin(parser, SIZES, NEEDED)
    program, missed = pathlib.Path(args.program).resolve(), 0
    with tempfile.TemporaryDirectory() as work:
        folder = (args.folder or pathlib.Path(work)).resolve()
        for size in args.sizes.split(","):
            shape = tuple(map(int, size.split("x")))
            for name in args.names or [*TORCHVISION, *ULTRALYTICS]:
                model = folder / f"{name}_{size}.onnx"
                if not model.exists():
                    export(name, shape, model)
                missed += not compare(program, model, shape, pathlib.Path(work))
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
