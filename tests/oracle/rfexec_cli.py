"""Runs the rfexec program on a model and an array, for the comparisons with ONNX Runtime."""

import json
import pathlib
import subprocess

import numpy as np


class Refused(Exception):
    """rfexec refused the model or the input (exit code 3); the text is its message."""


def run(program, model, image, out_dir, options=()):
    """Runs `model` on the array `image` (1xCxHxW float32); returns (report, {output name: array})."""
    out_dir = pathlib.Path(out_dir)
    array = out_dir / "input.npy"
    np.save(array, np.ascontiguousarray(image, dtype=np.float32))
    for stale in out_dir.glob("output*.npy"):
        stale.unlink()
    command = [program, "run", str(model), str(array), "--json", "-o", str(out_dir / "output.npy")]
    done = subprocess.run(command + list(options), capture_output=True, text=True, check=False)
    if done.returncode == 3:
        raise Refused(done.stderr.strip())
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    arrays = {}
    for output in report["outputs"]:
        single = len(report["outputs"]) == 1
        name = "output.npy" if single else f"output.{output['name'].replace('/', '_')}.npy"
        arrays[output["name"]] = np.load(out_dir / name).reshape(output["shape"])
    return report, arrays


def worst_error(ours, theirs):
    """Largest difference relative to the largest magnitude of the expected array."""
    if ours.shape != theirs.shape:
        raise RuntimeError(f"shape {ours.shape}, expected {theirs.shape}")
    if theirs.size == 0:
        return 0.0
    same_nan = np.isnan(ours) == np.isnan(theirs)
    if not same_nan.all():
        return float("inf")
    ours = np.nan_to_num(ours.astype(np.float64), nan=0.0)
    theirs = np.nan_to_num(theirs.astype(np.float64), nan=0.0)
    scale = max(np.abs(theirs).max(), 1e-30)
    return float(np.abs(ours - theirs).max() / scale)
