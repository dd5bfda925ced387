"""The same detector over a large picture in four ways, against the truth: whole in ONNX Runtime, by hand-made
tiles with an overlap, by SAHI (PyPI), and by rfexec. Prints the table of docs/tiling_peers.md.

    python3 tools/scripts/compare_tilings.py BUILD_DIR WORK_DIR [--size 6000x5000] [--seeds 42,1,2] [--figure F.png]

Needs numpy, onnxruntime, Pillow, sahi and scipy. The detector is data/defect_net.onnx, which was trained for such
pictures: a defect is a connected region of a class's channel above 0.5. Every way has the same rule and the same
network; they differ in what they make of the edges of tiles. Each way runs in a process of its own, whose peak
memory the kernel reports.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

TOP = Path(__file__).resolve().parents[2]
MODEL = TOP / "data" / "defect_net.onnx"
CELL = 8  # pixels of the picture for one of the map
LEAST_CELLS = (2, 1, 4)  # of a scratch, a pit and a stain: the demo's rule
KINDS = ("scratch", "pit", "stain")
MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
TILE, SHARE = 512, 0.1


def picture_of(path):
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    return np.asarray(Image.open(path).convert("RGB"))


def session():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])


def boxes_of(net, samples):
    """(kind, left, top, right, bottom, score, cells) of the regions that the network finds in samples [h, w, 3]."""
    from scipy import ndimage

    image = ((samples.astype(np.float32) / np.float32(255) - MEAN) / STD).transpose(2, 0, 1)[None]
    maps = net.run(None, {net.get_inputs()[0].name: np.ascontiguousarray(image)})[0][0]
    found = []
    for kind, map in enumerate(maps):
        labels, n = ndimage.label(map > 0.5, np.ones((3, 3)))
        for k, (rows, cols) in enumerate(ndimage.find_objects(labels)):
            mask = labels[rows, cols] == k + 1
            if mask.sum() < LEAST_CELLS[kind]:
                continue
            at = (cols.start * CELL, rows.start * CELL, cols.stop * CELL, rows.stop * CELL)
            found.append((kind, *at, float(map[rows, cols][mask].max()), int(mask.sum())))
    return found


def whole(path, _):
    return boxes_of(session(), picture_of(path))


def tile_corners(size):
    step = TILE - int(TILE * SHARE)
    return sorted({min(at, max(0, size - TILE)) for at in range(0, size, step)})


def by_hand(path, merged):
    """Tiles that overlap by a tenth; with `merged`, of boxes that overlap by more than 0.45 the better one stays."""
    net, picture, found = session(), picture_of(path), []
    for y in tile_corners(picture.shape[0]):
        for x in tile_corners(picture.shape[1]):
            for kind, *at, score, cells in boxes_of(net, picture[y : y + TILE, x : x + TILE]):
                found.append((kind, at[0] + x, at[1] + y, at[2] + x, at[3] + y, score, cells))
    if not merged:
        return found
    kept = []
    for box in sorted(found, key=lambda box: -box[5]):
        if not any(box[0] == other[0] and overlap(box, other) > 0.45 for other in kept):
            kept.append(box)
    return kept


def overlap(a, b):
    w, h = min(a[3], b[3]) - max(a[1], b[1]), min(a[4], b[4]) - max(a[2], b[2])
    both = max(w, 0) * max(h, 0)
    return both / (area(a) + area(b) - both)


def area(box):
    return (box[3] - box[1]) * (box[4] - box[2])


def sahi(path, _):
    from sahi.models.base import DetectionModel
    from sahi.predict import get_sliced_prediction
    from sahi.prediction import ObjectPrediction

    class Detector(DetectionModel):
        def load_model(self):
            self.model = session()
            self.category_mapping = {str(i): kind for i, kind in enumerate(KINDS)}

        def set_device(self, device=None):
            self.device = "cpu"

        def perform_inference(self, image):
            self._original_predictions = [boxes_of(self.model, image)]

        def _create_object_prediction_list_from_original_predictions(self, shift_amount_list=None, full_shape_list=None):
            shift = (shift_amount_list or [[0, 0]])[0]
            shape = (full_shape_list or [None])[0]
            shift, shape = (shift[0], shape) if isinstance(shift[0], (list, tuple)) else (shift, shape)
            self._object_prediction_list_per_image = [
                [
                    ObjectPrediction(
                        bbox=list(box[1:5]), category_id=box[0], category_name=KINDS[box[0]], score=box[5],
                        shift_amount=shift, full_shape=shape,
                    )
                    for box in self._original_predictions[0]
                ]
            ]

    detector = Detector(model_path=str(MODEL), confidence_threshold=0.5)
    result = get_sliced_prediction(
        path, detector, slice_height=TILE, slice_width=TILE, overlap_height_ratio=SHARE, overlap_width_ratio=SHARE,
        perform_standard_pred=False, verbose=0,
    )
    found = []
    for item in result.object_prediction_list:
        box = item.bbox
        found.append((int(item.category.id), *(int(v) for v in box.to_xyxy()), float(item.score.value), 0))
    return found


def rfexec(build, path, work, budget):
    """Runs the program; its boxes, seconds and peak in MiB."""
    table = work / "found.csv"
    command = [build / "rfexec", "run", MODEL, path, "--memory", budget, "--regions", table, "--threshold", "0.5"]
    command += ["--connect", "8", "--json"]
    start = time.perf_counter()
    said = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
    seconds = time.perf_counter() - start
    shift = CELL / 2 - 0.5  # its pixels lie at the centres of receptive fields
    found = []
    with open(table, newline="") as lines:
        for row in csv.DictReader(lines):
            kind, cells = int(row["label"]), int(row["pixels"])
            if cells >= LEAST_CELLS[kind]:
                at = [int(float(row[side]) + shift) for side in ("left", "top", "right", "bottom")]
                found.append((kind, *at, float(row["largest_score"]), cells))
    return found, seconds, said["measured"]["peak_rss_bytes"] / 2**20


def truth_of(path):
    with open(path, newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [(KINDS.index(r["kind"]), *(int(r[k]) for k in ("x0", "y0", "x1", "y1"))) for r in rows]


def is_of(box, defect):
    """Half of the box lies in the defect's, grown by a cell: the demo's rule."""
    left, top, right, bottom = defect[1] - CELL, defect[2] - CELL, defect[3] + CELL, defect[4] + CELL
    w, h = min(box[3], right) - max(box[1], left), min(box[4], bottom) - max(box[2], top)
    return box[0] == defect[0] and max(w, 0) * max(h, 0) * 2 >= area(box)


def score(found, truth, reference):
    """found, missed, doubled, cut, false: cut ones cover less than 0.8 of the whole run's box of the defect."""
    counts = dict.fromkeys(("found", "missed", "doubled", "cut", "false"), 0)
    for defect in truth:
        mine = [box for box in found if is_of(box, defect)]
        best = [box for box in reference if is_of(box, defect)]
        counts["found" if mine else "missed"] += 1
        counts["doubled"] += len(mine) > len(best) > 0
        whole_area = max(map(area, best), default=0)
        counts["cut"] += bool(mine) and max(map(area, mine)) < 0.8 * whole_area
    counts["false"] = sum(not any(is_of(box, defect) for defect in truth) for box in found)
    counts["same"] = sorted(b[:5] for b in found) == sorted(b[:5] for b in reference)
    return counts


def draw(path, ways, truth, name):
    """A picture of one defect that SAHI cuts, for each way its boxes in red; `ways`: name to boxes."""
    from PIL import Image, ImageDraw

    reference = ways["whole"]
    for defect in truth:
        best = max(map(area, (box for box in reference if is_of(box, defect))), default=0)
        mine = [area(box) for box in ways["SAHI"] if is_of(box, defect)]
        if mine and max(mine) < 0.6 * best:
            break
    margin, big = 48, 2
    at = (defect[1] - margin, defect[2] - margin, defect[3] + margin, defect[4] + margin)
    shown = [way for way in ("tiles", "tiles, merged", "SAHI", "rfexec") if way in ways]
    part = Image.fromarray(picture_of(path)).crop(at)
    part = part.resize((part.width * big, part.height * big))
    sheet = Image.new("RGB", ((part.width + 8) * len(shown) - 8, part.height + 20), "white")
    for i, way in enumerate(shown):
        panel = part.copy()
        pen = ImageDraw.Draw(panel)
        for box in ways[way]:
            pen.rectangle([(v - at[k % 2]) * big for k, v in enumerate(box[1:5])], outline=(255, 40, 40), width=3)
        sheet.paste(panel, (i * (part.width + 8), 20))
        ImageDraw.Draw(sheet).text((i * (part.width + 8) + 2, 4), way, fill="black")
    sheet.quantize(64).save(name, optimize=True)


WAYS = {"whole": whole, "tiles": by_hand, "tiles, merged": by_hand, "SAHI": sahi}


def child(way, path):
    start = time.perf_counter()
    found = WAYS[way](path, way.endswith("merged"))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump({"found": found, "seconds": seconds, "peak": peak}, sys.stdout)


def run_child(way, path):
    command = [sys.executable, __file__, "--child", way, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    said = json.loads(done.stdout.splitlines()[-1])
    return [tuple(box) for box in said["found"]], said["seconds"], said["peak"]


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--size", default="6000x5000")
    parser.add_argument("--seeds", default="42,1,2")
    parser.add_argument("--memory", default="64MiB")
    parser.add_argument("--figure", type=Path, help="draw a defect that SAHI cuts in the first picture")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    print("| seed | way | found | missed | doubled | cut | false | boxes of the whole run | s | peak MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for seed in args.seeds.split(","):
        path, truth_path = args.work / f"part{seed}.png", args.work / f"truth{seed}.csv"
        maker = args.build / "tools" / "demo" / "rfx-make-inspection-image"
        subprocess.run([maker, args.size, path, "--truth", truth_path, "--seed", seed], check=True)
        truth, reference, ways = truth_of(truth_path), None, {}
        for way in [*WAYS, "rfexec"]:
            if way == "rfexec":
                found, seconds, peak = rfexec(args.build, path, args.work, args.memory)
            else:
                found, seconds, peak = run_child(way, path)
            reference = found if reference is None else reference
            ways[way] = found
            n = score(found, truth, reference)
            same = "all" if n.pop("same") else "not all"
            print(f"| {seed} | {way} | {' | '.join(map(str, n.values()))} | {same} | {seconds:.1f} | {peak:.0f} |", flush=True)
        if args.figure:
            draw(path, ways, truth, args.figure)
            args.figure = None
    return 0


if __name__ == "__main__":
    sys.exit(main())
