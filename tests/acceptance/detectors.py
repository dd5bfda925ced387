#!/usr/bin/env python3
"""Detectors of Ultralytics: the boxes of rfexec beside those of PyTorch and torchvision.

    detectors.py [--folder DIR] [--models DIR] [--sizes HxW,...] [--large] PROGRAM [NAME ...]

For each network of tools/scripts/export_detectors.py and each size:
1. the file is exported, unless it is in DIR already;
2. the boxes of `rfexec run --boxes` are those of tests/oracle/box_cases.py on the output tensor that
   the same run writes: number, order and every bit; of -obb networks those of oriented_cases.py, and of
   Ultralytics' own suppression of boxes with an angle; of others with --soft-nms too;
3. the tensor agrees with ONNX Runtime within 1e-2 of its largest magnitude;
4. the file of boxes has the same bytes under every plan (untiled, bands, tiles, the least memory that
   the planner names) and with one to three threads, and when 1, 2, 3 and 5 parts are merged (yolo11n and
   yolov10n have no parts: their attention is computed with whole tensors);
5. key points of -pose networks are those of the tensor, as the boxes in 2;
6. masks of -seg networks, in all three forms, are those of tests/oracle/mask_cases.py on the tensors of
   the same run, and Ultralytics' process_mask has other pixels only where the value that is compared
   with 0 lies within 1e-5 of the largest values of its mask.

--models DIR: the same for yunet_n_dynamic.onnx (public repository ShiqiYu/libfacedetection.train) and
version-RFB-640.onnx (Linzaer/Ultra-Light-Fast-Generic-Face-Detector-1MB, one size), whichever are there.

--large: the least memory of --boxes that `rfexec plan` names at large sizes, its parts, and the peak of
a run inside the budget.

Needs torch, torchvision, ultralytics, onnx, onnxslim and onnxruntime (tests/acceptance/detectors.txt), and
with --models OpenCV: several GB, so it is run by hand. Where one is missing it says so, and nothing is
compared. The exit code is 1 when anything was missed; every miss is printed.
"""

import argparse
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ("torch", "torchvision", "ultralytics", "onnx", "onnxslim", "onnxruntime")
TOLERANCE = 1e-2  # networks of drawn weights magnify the rounding of their first layers
SIZES = "640x640,320x480,224x224,608x800,1024x1024"
PLANS = ("--untiled --threads 1", "--untiled --threads 3", "--bands 64 --threads 2", "--bands 24 --threads 1",
         "--tiles 2x3 --threads 2", "--tiles 3x2 --threads 3")
# head, classes (0: the usual number) and score of networks with key points and masks. yolo11n-pose.yaml has 80 classes.
FURTHER = {"yolov8n-pose": ("yolov8-pose", 0, 0.25), "yolo11n-pose": ("yolov8-pose", 80, 0.25),
           "yolov8n-seg": ("yolov8-seg", 0, 0.5), "yolo11n-seg": ("yolov8-seg", 80, 0.5),
           "yolo26n-pose": ("yolo26-pose", 0, 0.25), "yolo26n-seg": ("yolo26-seg", 0, 0.25)}
THEIR_MASKS = 200  # of a network and size: the first ones
# file, head, scores above which faces are kept, sizes, largest value of the image (1: as the program of the
# head scales it)
FACES = (("yunet_n_dynamic.onnx", "yunet", ("0.01", "0.05"), "640x640,320x480,224x224,608x800,1024x1024", 255),
         ("version-RFB-640.onnx", "rfb", ("0.01", "0.05"), "480x640", 1))
# rows, columns, MiB, and whether maps may wait in files. yolo12n stores a map at stride 16 while it computes attention
# over all of stride 32.
LARGE = (("yolo11n", 8000, 8000, 256, False), ("yolo12n", 8000, 8000, 416, False), ("yolo12n", 8000, 8000, 256, True),
         ("yolov8n", 16384, 16384, 96, False))
OBB, CHOSEN_OBB = "yolov8-obb", "yolo26-obb"
IN_PARTS = ("yolov5nu", "yolov8n", "yolo12n", "yolov8n-obb")
MIB = 1 << 20


def say(good, name, what):
    print(f"{'ok' if good else 'FAILED'}: {name}: {what}", flush=True)
    return good


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def smallest(program, model, image, boxes, *asked):
    """Options for the least budget that the planner names for boxes; None, with its words, without one."""
    for mib in (8 << k for k in range(8)):
        code, _, words = call(program, "plan", model, image, "--boxes", boxes, *asked, "--memory", f"{mib}MiB")
        found = re.findall(r"--memory \d+(?: --threads \d+)?", words)
        if found or code == 0:
            return (found[-1] if found else f"--memory {mib}MiB"), words
    return None, words


def boxes_of(program, model, image, boxes, *options):
    """Runs; returns an error's words, or None."""
    code, _, words = call(program, "run", model, image, "--boxes", boxes, *options)
    return None if code == 0 else f"{' '.join(map(str, options))}: exit {code}: {words[:300]}"


def agrees(model, image, ours, chosen):
    """Largest difference to ONNX Runtime's first output. Boxes that the network has chosen are compared by score: two of
    nearly equal scores may change places."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    theirs = session.run(None, {session.get_inputs()[0].name: np.load(image)})[0]
    if chosen:
        ours, theirs = ours[0, :, 4], theirs[0, :, 4]
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def references(output, head, file):
    """Yields the boxes of each reference, and texts of those of the file that differ."""
    import box_cases
    import oriented_cases

    if head == CHOSEN_OBB:
        theirs = oriented_cases.chosen_by_network(output)
        yield theirs, oriented_cases.differences(oriented_cases.read(file), theirs)
        return
    if head != OBB:
        theirs = box_cases.reference(box_cases.rows_of(output, head, 0, False), head, 0.25, 0.45, False)
        yield theirs, box_cases.differences(box_cases.read(file), theirs)
        return
    for chosen in (oriented_cases.suppress, oriented_cases.suppress_by_ultralytics):
        theirs = oriented_cases.reference(output, chosen=chosen)
        yield theirs, oriented_cases.differences(oriented_cases.read(file), theirs)


def compare(program, model, head, image, size, work):
    import numpy as np

    # the shapes are those of yolov8 with a class more
    asked = ("--head", head) if head in (OBB, CHOSEN_OBB) else ()
    tensor, first, other = work / "tensor.npy", work / "first.json", work / "other.json"
    name = f"{model.stem} {size}"
    wrong = boxes_of(program, model, image, first, "-o", tensor, *asked, *PLANS[0].split())
    if wrong:
        return say(False, name, wrong)
    output = np.load(tensor)
    good = True
    for theirs, texts in references(output, head, first):
        good = say(not texts, name, f"{len(theirs)} boxes of the reference, {len(texts)} differ "
                   f"{'; '.join(texts[:3])}") and good
    if head == "yolov8":
        import box_cases

        wrong = boxes_of(program, model, image, other, "--soft-nms", "--score", "0.3")
        theirs = box_cases.reference(box_cases.rows_of(output, head, 0, False), head, 0.3, 0, False, soft=True)
        texts = [wrong] if wrong else box_cases.differences(box_cases.read(other), theirs)
        good = say(not texts, name, f"--soft-nms: {len(theirs)} boxes, {len(texts)} differ {'; '.join(texts[:3])}") and good
    worst = agrees(model, image, output, head in ("yolov10", CHOSEN_OBB))
    good = say(worst <= TOLERANCE, name, f"largest error {worst:.1e} beside ONNX Runtime") and good
    least, words = smallest(program, model, image, other, *asked)
    if least is None:
        return say(False, name, f"no least budget in: {words[:300]}")
    good = same_plans(program, model, image, name, first, other, [*PLANS[1:], least], *asked) and good
    if model.stem not in IN_PARTS:
        return good
    return same_parts(program, model, image, name, first, work, (), asked) and good


def same_plans(program, model, image, name, first, other, plans, *asked):
    good = True
    for plan in plans:
        other.unlink(missing_ok=True)
        wrong = boxes_of(program, model, image, other, *asked, *plan.split())
        if not wrong and other.read_bytes() != first.read_bytes():
            wrong = f"{plan}: another file of boxes"
        good = (not wrong or say(False, name, wrong)) and good
    return say(good, name, f"the same file under {len(plans)} other plans, the last one {plans[-1]}")


def merge(program, work, end, *asked):
    """Merges the files part*<end> of the folder to one; returns an error's words, or None."""
    files = sorted(work.glob(f"part*{end}"))
    code, _, words = call(program, "merge", *files, *asked)
    return None if code == 0 else f"merge: exit {code}: {words[:300]}"


def boxes_of_parts(program, model, image, count, merged, work, head, asked):
    """Runs all parts, after the rounds of states that they need, and merges them."""
    code, out, words = call(program, "plan", model, image, "--parts", count, "--json", *head)
    if code != 0:
        return f"plan --parts {count}: exit {code}: {words[:300]}"
    rounds, states, wrong = json.loads(out)["rounds"], (), None
    for done in range(rounds):
        end = ".npy" if done == rounds - 1 else ".states"
        for index in range(1, count + 1):
            code, _, words = call(program, "run", model, image, "--part", f"{index}/{count}", "-o",
                                  work / f"part{index}{end}", *head, *states)
            if code != 0:
                return f"part {index} of {count}: exit {code}: {words[:300]}"
        last = end == ".npy"
        wrong = merge(program, work, end, "-o", merged if last else work / f"round{done}", *(asked if last else ()))
        states = ("--states", work / f"round{done}")
        for file in work.glob("part*"):
            file.unlink()
        if wrong:
            break
    return wrong


def same_parts(program, model, image, name, first, work, head=(), asked=()):
    """head: options of the parts; asked: those of merge besides."""
    good, merged = True, work / "merged.json"
    for count in (1, 2, 3, 5):
        merged.unlink(missing_ok=True)
        wrong = boxes_of_parts(program, model, image, count, merged, work, head, (*head, *asked))
        if not wrong and merged.read_bytes() != first.read_bytes():
            wrong = f"{count} parts: another file of boxes"
        good = (not wrong or say(False, name, wrong)) and good
    return say(good, name, "the same file of 1, 2, 3 and 5 parts")
def like_ultralytics(prototypes, coefficients, boxes, shape, name):
    """The same masks by Ultralytics, whose sums are in another order."""
    import mask_cases
    import numpy as np
    import torch
    from ultralytics.utils import ops

    differing = beyond = 0
    for at in range(0, len(boxes), 20):
        part = boxes[at : at + 20]
        corners = np.array([box["box"] for box in part], np.float32)
        k = np.stack([coefficients[box["index"]] for box in part])
        theirs = ops.process_mask(*map(torch.from_numpy, (prototypes, k, corners)), shape, upsample=True)
        for box, own, mask in zip(part, k, theirs.numpy().astype(bool)):
            y0, y1, x0, x1 = rectangle = mask_cases.inside_of(box["box"], *shape)
            wrong = mask != mask_cases.from_runs(box["mask"]["counts"], *shape)
            differing += int(wrong.sum())
            if wrong.any():
                value = np.full(shape, np.inf, np.float32)
                value[y0:y1, x0:x1] = mask_cases.values_of(prototypes, own, rectangle)
                most = np.abs(value[np.isfinite(value)]).max()
                beyond += int((np.abs(value[wrong]) > 1e-5 * most).sum())
    return say(beyond == 0, name, f"{len(boxes)} masks of Ultralytics, {differing} pixels differ, {beyond} of them "
               "not by rounding")


def compare_masks(program, model, image, first, classes, asked, name, shape, work):
    import mask_cases
    import numpy as np

    forms = {form: work / f"first.{form}" for form in ("coco.json", "geojson")}
    for path in forms.values():
        wrong = boxes_of(program, model, image, path, *asked)
        if wrong:
            return say(False, name, wrong)
    candidates, prototypes = np.load(work / "tensor.output0.npy"), np.load(work / "tensor.output1.npy")
    if classes == 0:  # boxes that the network has chosen: score and label stand where classes do
        candidates, classes = candidates.transpose(0, 2, 1), 2
    boxes, coco = mask_cases.load(first)["boxes"], mask_cases.load(forms["coco.json"])
    features = mask_cases.load(forms["geojson"])["features"]
    texts, pixels = mask_cases.differences(candidates, prototypes, boxes, classes, *shape, coco, features)
    good = say(not texts, name, f"{len(boxes)} masks of {pixels} pixels, {len(texts)} differ {'; '.join(texts[:3])}")
    return like_ultralytics(prototypes[0], candidates[0, 4 + classes :].T, boxes[:THEIR_MASKS], shape, name) and good


def compare_further(program, model, image, size, work):
    """Networks with key points or masks."""
    import box_cases
    import numpy as np

    head, classes, score = FURTHER[model.stem]
    first, other, name = work / "first.json", work / "other.json", f"{model.stem} {size}"
    asked = ["--head", head, "--score", score, *(("--class-count", classes) if classes else ())]
    wrong = boxes_of(program, model, image, first, *asked, "-o", work / "tensor.npy", *PLANS[0].split())
    if wrong:
        return say(False, name, wrong)
    masks = head.endswith("-seg")
    rows = box_cases.rows_of(np.load(work / ("tensor.output0.npy" if masks else "tensor.npy")), head, classes, False)
    theirs = box_cases.reference(rows, head, score, 0.45, False, None, classes)
    texts = box_cases.differences(box_cases.read(first), theirs)
    good = say(not texts, name, f"{len(theirs)} boxes of the reference, {len(texts)} differ {'; '.join(texts[:3])}")
    if masks:
        classes = 0 if head in box_cases.CHOSEN else box_cases.classes_of(rows, head, classes)
        good = compare_masks(program, model, image, first, classes, asked, name, tuple(map(int, size.split("x"))),
                             work) and good
    least, words = smallest(program, model, image, other, *asked)
    if least is None:
        return say(False, name, f"no least budget in: {words[:300]}")
    return same_plans(program, model, image, name, first, other, [*PLANS[1:], least], *asked) and good


def joined_by_hand(model, head, image):
    """The joined output by ONNX Runtime."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    values = dict(zip(names, session.run(names, {session.get_inputs()[0].name: np.load(image)})))
    levels = ([[f"{part}_{stride}" for part in ("cls", "obj", "bbox", "kps")] for stride in (8, 16, 32)]
              if head == "yunet" else [["scores", "boxes"]])
    return np.concatenate([np.concatenate([values[name] for name in level], 2) for level in levels], 1)


def like_opencv(program, model, image, shape, name, work):
    """All candidates of OpenCV's own decoding, without suppression: OpenCV suppresses boxes that it has
    rounded to pixels."""
    import cv2
    import numpy as np

    detector = cv2.FaceDetectorYN.create(str(model), "", shape[::-1], 0.01, 1.0, 1000000)
    _, theirs = detector.detect(np.load(image)[0].transpose(1, 2, 0).astype(np.uint8))
    wrong = boxes_of(program, model, image, work / "other.json", "--score", "0.01", "--iou", "1")
    if wrong:
        return say(False, name, wrong)
    boxes = json.loads((work / "other.json").read_text())["boxes"]
    ours = np.array([[*box["box"][:2], box["box"][2] - box["box"][0], box["box"][3] - box["box"][1],
                      *np.ravel(box["points"]), box["score"]] for box in boxes])
    ours, theirs = (rows[np.lexsort(rows[:, 1::-1].round(1).T)] for rows in (ours, theirs.astype(np.float64)))
    worst = float(np.abs(ours - theirs).max()) if ours.shape == theirs.shape else float("inf")
    return say(worst <= 1e-3, name, f"{len(ours)} candidates, {len(theirs)} of OpenCV {cv2.__version__}, farthest "
               f"{worst:.1e} pixels apart")


def compare_faces(program, model, head, score, image, size, work):
    import box_cases
    import numpy as np

    tensor, first, other = work / "tensor.npy", work / "first.json", work / "other.json"
    name, asked = f"{model.stem} {size}, score {score}", ("--score", score)
    wrong = boxes_of(program, model, image, first, *asked, "-o", tensor, *PLANS[0].split())
    if wrong:
        return say(False, name, wrong)
    output = np.load(work / "tensor.detections.npy")
    shape = tuple(map(int, size.split("x")))
    theirs = box_cases.reference(box_cases.rows_of(output, head, 0, False), head, float(score), 0.45, False, shape)
    texts = box_cases.differences(box_cases.read(first), theirs)
    good = say(not texts, name, f"{len(theirs)} boxes of the reference, {len(texts)} differ {'; '.join(texts[:3])}")
    if head == "yunet":
        good = like_opencv(program, model, image, shape, name, work) and good
    whole = joined_by_hand(model, head, image)
    worst = float(np.abs(output - whole).max() / np.abs(whole).max())
    good = say(worst <= TOLERANCE, name, f"largest error {worst:.1e} beside ONNX Runtime") and good
    good = same_plans(program, model, image, name, first, other, (*PLANS[1:], "--memory 40MiB"), *asked) and good
    if head == "rfb":  # its outputs are no maps
        return good
    return same_parts(program, model, image, name, first, work, ("--head", head), asked) and good


def parts_of(plan):
    """The parts of a plan's memory in MiB, the largest first."""
    parts = {key: value for key, value in plan["plan"]["breakdown"].items() if isinstance(value, int)}
    return ", ".join(f"{key} {value / MIB:.1f}" for key, value in sorted(parts.items(), key=lambda item: -item[1])
                     if value >= MIB)


def measure(program, folder, name, h, w, budget, spills, work):
    """The plan and the peak inside a budget. No score is above 1: the list of candidates is allocated, and
    stays empty, as a network of drawn weights finds objects everywhere."""
    model, image, boxes = folder / f"{name}.onnx", f"synthetic:{h}x{w}", work / "large.json"
    title = f"{name} {h}x{w}"
    limits = ["--memory", f"{budget}MiB", *(["--spill", work] if spills else [])]
    code, out, words = call(program, "plan", model, image, "--for-output", boxes, *limits, "--json")
    if code != 0:
        return say(False, title, f"not inside {budget} MiB: {words}")
    plan = json.loads(out)
    begin = time.monotonic()
    code, out, words = call(program, "run", model, image, "--boxes", boxes, *limits, "--json", "--score", "1")
    seconds = time.monotonic() - begin
    if code != 0:
        return say(False, title, f"inside {budget} MiB: exit {code}: {words[:300]}")
    peak = json.loads(out)["measured"]["peak_rss_bytes"]
    return say(peak <= budget * MIB, title, f"peak {peak / MIB:.1f} MiB of {budget}{' and files' if spills else ''}, "
               f"{seconds:.0f} s; plan: {parts_of(plan)}")


def begin(parser, sizes, needed):
    """The arguments, with those that anchor_heads.py has too. Exits with 77 where a package is missing."""
    parser.add_argument("--folder", type=pathlib.Path, help="where the files are, and stay")
    parser.add_argument("--sizes", default=sizes)
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    lacks = [name for name in needed if importlib.util.find_spec(name) is None]
    if lacks:
        print(f"NOT compared: {', '.join(lacks)} not installed (tests/acceptance/detectors.txt)")
        sys.exit(77)
    if args.folder is not None:
        args.folder.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(TOP / "tests/oracle"), str(TOP / "tools/scripts")]
    return args


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, help="where the face detectors are")
    parser.add_argument("--large", action="store_true")
    args = begin(parser, SIZES, NEEDED)
    import export_detectors
    import numpy as np

    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        kept = args.folder or work
        names = args.names or list(export_detectors.NETWORKS)
        for name in names:
            if not (kept / f"{name}.onnx").exists():
                export_detectors.export(name, kept / f"{name}.onnx")
        for name in names:
            chosen = name in export_detectors.END_TO_END
            head = CHOSEN_OBB if chosen else OBB
            if not name.endswith("-obb"):
                head = "yolov10" if chosen else "yolov8"
            for size in () if args.large else args.sizes.split(","):
                h, w = map(int, size.split("x"))
                np.save(work / "image.npy", export_detectors.drawn_image(h, w))
                if name in FURTHER:
                    missed += not compare_further(args.program, kept / f"{name}.onnx", work / "image.npy", size, work)
                    continue
                missed += not compare(args.program, kept / f"{name}.onnx", head, work / "image.npy", size, work)
        for file, head, scores, sizes, most in FACES if args.models and not args.large else ():
            for size in sizes.split(",") if (args.models / file).exists() else ():
                h, w = map(int, size.split("x"))
                image = export_detectors.drawn_image(h, w)
                np.save(work / "image.npy", (image * most).round() if most > 1 else (image * 255 - 127) / 128)
                for score in scores:
                    missed += not compare_faces(args.program, args.models / file, head, score, work / "image.npy",
                                                size, work)
        for name, h, w, budget, spills in LARGE if args.large else ():
            if name in names:
                missed += not measure(args.program, kept, name, h, w, budget, spills, work)
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
