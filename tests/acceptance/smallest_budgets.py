#!/usr/bin/env python3
"""Hybrid networks of thousands of nodes at their smallest budgets: no run takes more than its budget.

    smallest_budgets.py [--networks N] [--first SEED] [--nodes LEAST,MOST] [--seconds S] PROGRAM

Each network (hybrid_networks.py) runs at the budget that the refusal of 1 MiB names, with 1 or 2 threads and no
output, .npy, TIFF, PNG or Zarr in turn. Its peak, by the kernel's account of the ended process and by the program's
own reading of VmHWM, must be within the budget, and the exit code 0. No new network after S seconds.
The exit code is 1 when one was over or was refused; each is printed.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2))
sys.path.insert(0, os.path.join(ROOT, "tools", "scripts", "soak"))

import hybrid_networks  # noqa: E402
from program import Program  # noqa: E402

OUTPUTS = [[], ["-o", "out.npy"], ["-o", "out.tif"], ["-o", "out.png", "--range", "-1,1"], ["-o", "out.zarr"]]


def clear(folder):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith("out.zarr"):
            shutil.rmtree(path)
        elif name.startswith("out."):
            os.unlink(path)


def judge(program, folder, seed, count):
    """(what was run, why it is wrong or None, share of the budget)."""
    model = os.path.join(folder, "hybrid.onnx")
    output = OUTPUTS[seed % len(OUTPUTS)]
    rows, columns = hybrid_networks.write(model, seed, count, bool(output))
    arguments = ["run", model, f"synthetic:{rows}x{columns}:{seed}", "--threads", str(1 + seed % 2), "--json"]
    if output:
        arguments += ["-o", os.path.join(folder, output[1]), *output[2:]]
    what = f"seed {seed}, {count} nodes, {1 + seed % 2} threads, {output[1] if output else 'no output'}"
    refused = program.run([*arguments, "--memory", "1MiB"])
    if refused.code == 4 and refused.document is None:
        return what + ": loading alone takes more than 24 MiB, no budget is named", None, 0.0
    if refused.code != 4:
        return what, f"exit code {refused.code} in 1 MiB: {program.words()[-300:]}", 0.0
    budget = refused.document["smallest_bytes"]
    clear(folder)
    ended = program.run([*arguments, "--memory", str(budget)])
    if ended.code != 0:
        return what, f"exit code {ended.code} in {budget}: {program.words()[-300:]}", 0.0
    peak = max(ended.peak_bytes, ended.document["measured"]["peak_rss_bytes"])
    what += f": {peak / 2**20:.2f} of {budget / 2**20:.2f} MiB"
    return what, None if peak <= budget else "over budget", peak / budget


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=200, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--nodes", default="1000,5000", metavar="LEAST,MOST")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S")
    parser.add_argument("program")
    args = parser.parse_args()
    least, most = (int(part) for part in args.nodes.split(","))
    begun, done, wrong, largest = time.monotonic(), 0, 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        program = Program(args.program, folder)
        for seed in range(args.first, args.first + args.networks):
            if time.monotonic() - begun > args.seconds:
                break
            count = random.Random(seed).randint(least, most)
            what, why, share = judge(program, folder, seed, count)
            print(f"WRONG {what}: {why}" if why else what, flush=True)
            done, wrong, largest = done + 1, wrong + (why is not None), max(largest, share)
        program.close()
    print(f"{done} networks, {wrong} over budget or refused, the largest share {100 * largest:.1f} %")
    sys.exit(1 if wrong or not done else 0)


if __name__ == "__main__":
    main()
