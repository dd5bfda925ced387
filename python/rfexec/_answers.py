"""What is found in outputs: boxes and points as arrays, regions as GeoJSON, summaries as dicts."""

from __future__ import annotations

import json
import os
import re
import tempfile
from typing import Any, Optional

import numpy as np

from ._errors import UsageError
from ._files import File
from ._masks import Mask

BOX = np.dtype([("box", np.float32, 4), ("score", np.float32), ("label", np.int32), ("index", np.int64)])
ORIENTED = np.dtype(
    [
        *(("corners", np.float32, (4, 2)), ("centre", np.float32, 2), ("size", np.float32, 2), ("angle", np.float32)),
        *(("score", np.float32), ("label", np.int32), ("index", np.int64)),
    ]
)
POINT = np.dtype([("x", np.float64), ("y", np.float64), ("score", np.float32), ("label", np.int32)])


def _found(network: Any, image: Any, end: str, output: Optional[str], file: dict[str, Any], run: dict[str, Any]) -> Any:
    """Runs the network, writes what is found to a file of a folder of its own, and reads it."""
    names = [info.name for info in network.outputs]
    if output is None and len(names) > 1:
        raise UsageError(f"output names one of {', '.join(map(repr, names))}")
    spill = run.get("spill")  # prototypes of masks wait in the folder too
    with tempfile.TemporaryDirectory(prefix="rfexec-", dir=spill if spill and os.path.isdir(spill) else None) as folder:
        path = os.path.join(folder, "found" + end)
        network.run(image, output={output or names[0]: File(path, **file)}, outputs=[], **run)
        with open(path, encoding="utf-8") as text:
            return json.load(text)


def boxes(network: Any, image: Any, output: Optional[str], file: dict[str, Any], run: dict[str, Any]) -> np.ndarray:
    found = _found(network, image, ".json", output, file, run)
    head = found["head"]  # "YOLOv8 head, 1 class, 17 points with scores"; or "head", the name of a file, and so on
    points = re.search(r", (\d+) points?( with scores)?$", head)
    masks = re.search(r", masks of \d+ prototypes?$", head)
    oriented = head.startswith(("YOLOv8 OBB head", "end-to-end OBB head"))
    shape = (int(points[1]), 3 if points[2] else 2) if points else ()
    kind: Any = [*BOX.descr, ("points", np.float32, shape)] if points else ORIENTED if oriented else BOX
    if masks:
        kind = [*BOX.descr, ("mask", object)]
    array = np.empty(len(found["boxes"]), kind)
    for one, box in zip(array, found["boxes"]):
        for name in one.dtype.names:
            if name == "mask":
                one[name] = Mask(**box[name])
            else:
                one[name] = np.array(box[name], one.dtype[name].base)  # None, not finite in JSON, is NaN
    return array


def points(network: Any, image: Any, output: Optional[str], file: dict[str, Any], run: dict[str, Any]) -> np.ndarray:
    found = _found(network, image, ".points.geojson", output, file, run)["features"]
    rows = [(f["geometry"]["coordinates"], f["properties"]) for f in found]
    # a score of infinity is null in JSON
    return np.array([(*at, np.inf if p["score"] is None else p["score"], p["label"]) for at, p in rows], POINT)


def summary(network: Any, image: Any, output: Optional[str], file: dict[str, Any], run: dict[str, Any]) -> Any:
    return _found(network, image, ".summary.json", output, file, run)


def regions(network: Any, image: Any, output: Optional[str], file: dict[str, Any], run: dict[str, Any]) -> Any:
    return _found(network, image, ".geojson", output, file, run)
