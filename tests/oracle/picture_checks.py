"""What the checks of pictures have in common: counting, running, means of 2 x 2 samples."""

import os
import subprocess

import numpy as np

COUNTS = {True: 0, False: 0}


def check(good, what):
    COUNTS[bool(good)] += 1
    if not good:
        print(f"FAILED: {what}")


def rfexec(program, *args):
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(args)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def halved(pixels):
    """Means of 2 x 2 samples, fewer at odd edges, of floats in double."""
    edge = [(0, 0), (0, pixels.shape[1] % 2), (0, pixels.shape[2] % 2)]
    wide = np.pad(pixels.astype(np.float64), edge, constant_values=np.nan)
    blocks = wide.reshape(wide.shape[0], wide.shape[1] // 2, 2, wide.shape[2] // 2, 2)
    means = np.nanmean(blocks, axis=(2, 4))
    return means.astype("f4") if pixels.dtype == "f4" else (means + 0.5).astype(pixels.dtype)


def make_parts(program, model, picture):
    """part1.npy and part2.npy, halves of an output."""
    for i in (1, 2):
        for old in (f"part{i}.npy", f"part{i}.npy.json"):
            if os.path.exists(old):
                os.remove(old)
        rfexec(program, "run", model, picture, "--part", f"{i}/2", "-o", f"part{i}.npy")
