#!/usr/bin/env python3
"""Boxes of text of a PP-OCR detector: one file under all plans, threads and parts, and a reference's boxes.

    text_boxes.py PROGRAM [--network NET] [--sizes HxW,...]

For each size the network (by default the built-in ppocr_det, whose weights are drawn) runs on a synthetic image.
The threshold is a quantile of its map, so that there are many regions.
1. The boxes are those of tests/oracle/text_cases.py on the map that the same run writes.
2. The file has the same bytes under every plan (untiled, bands, tiles, a budget) and with one to three threads, and
   when 1, 2, 3 and 5 parts are merged.

Needs numpy, scipy and onnx (tests/oracle/answers.txt): where one is missing it says so, and nothing is compared
(exit code 77). The exit code is 1 when anything was missed; every miss is printed.
"""

import argparse
import importlib.util
import json
import pathlib
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("acceptance", "oracle")]
import detectors

NEEDED = ("numpy", "scipy", "onnx")
SIZES = "320x480,224x224,640x640,608x800,1024x1024"
PLANS = ("--untiled --threads 3", "--bands 64 --threads 2", "--bands 24 --threads 1", "--tiles 2x3 --threads 2",
         "--tiles 3x2 --threads 3", "--memory 256MiB --answer-memory 64MiB")
SHARE, SCORE, GROWTH = 0.65, 0.01, 1.5  # share of the pixels below the threshold


def find(program, network, image, path, *options):
    """Writes the boxes; returns an error's words, or None."""
    path.unlink(missing_ok=True)
    code, _, words = detectors.call(program, "run", network, image, "--text", path, *options)
    return None if code == 0 else f"{' '.join(map(str, options))}: exit {code}: {words[:300]}"


def same(wrong, path, first):
    return wrong or (None if path.read_bytes() == first.read_bytes() else "another file of boxes")


def compare(program, network, size, work):
    import numpy as np
    import text_cases

    name, image, first, other = f"{network} {size}", f"synthetic:{size}", work / "first.json", work / "other.json"
    code, _, words = detectors.call(program, "run", network, image, "-o", work / "map.npy", "--untiled")
    if code != 0:
        return detectors.say(False, name, words[:300])
    values = np.load(work / "map.npy")[0, 0]
    threshold = float(np.float32(np.quantile(values, SHARE).round(4)))
    asked = ("--threshold", threshold, "--score", SCORE, "--unclip", GROWTH)
    wrong = find(program, network, image, first, *asked, "--untiled", "--threads", 1)
    if wrong:
        return detectors.say(False, name, wrong)
    theirs = text_cases.reference(values, threshold, SCORE, GROWTH)
    texts = text_cases.differences(json.loads(first.read_text())["boxes"], theirs)
    good = detectors.say(not texts and len(theirs) > 0, name, f"{len(theirs)} boxes of the reference, {len(texts)} "
                         f"differ {'; '.join(texts[:3])}")
    for plan in PLANS:
        wrong = same(find(program, network, image, other, *asked, *plan.split()), other, first)
        good = (not wrong or detectors.say(False, name, f"{plan}: {wrong}")) and good
    good = detectors.say(good, name, f"the same file under {len(PLANS)} other plans")
    merged = work / "merged.text.json"
    for count in (1, 2, 3, 5):
        merged.unlink(missing_ok=True)
        wrong = detectors.results_of_parts(program, network, image, count, ((merged, *asked),), work)
        wrong = same(wrong, merged, first)
        good = (not wrong or detectors.say(False, name, f"{count} parts: {wrong}")) and good
    return detectors.say(good, name, "the same file of 1, 2, 3 and 5 parts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--network", default="ppocr_det")
    parser.add_argument("--sizes", default=SIZES)
    args = parser.parse_args()
    lacks = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacks:
        print(f"NOT compared: {', '.join(lacks)} not installed (tests/oracle/answers.txt)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        missed = sum(not compare(args.program, args.network, size, pathlib.Path(folder))
                     for size in args.sizes.split(","))
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
