#!/usr/bin/env python3
"""Random networks of one-byte integers under all kinds of plan: 0 bytes may differ, with any instruction set.

    random_quantised.py [--networks 10000] [--seed 1] [--kernels avx2,base] [--jobs 2] SUITES

SUITES is the program of tests/suites (build/tests/suites); with an emulator before it, in one argument
("qemu-aarch64 -L /usr/aarch64-linux-gnu build-aarch64/tests/suites"). Of the networks, most run in test_session: each
untiled, in stages at random, tiles, bands, strips, row by row, within budgets, with maps in files, in groups, with 1 to
3 threads, against a run that knows no plans. The others run in test_random_tiles, test_parts (shards of an output) and
test_sections (cuts between two programs). Networks are one-byte integers from the image to the end, with convolutions,
sums, products, concatenations, pools, means and moves, and float32 between conversions where each operation is rounded
alike on all processors. So the fingerprint of all outputs of test_session must be the same for each instruction set.

Kernel sets: avx512vnni, avxvnni, avx512, avx2, base, neon; those that the processor does not have are named and left out. The exit code is 1
if anything differed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

SHARES = {"test_session": 0.7, "test_random_tiles": 0.1, "test_parts": 0.1, "test_sections": 0.1}
CHUNK = 200  # networks of one process
SKIPPED = 77


def run_chunk(command, suite, first, count, kernels):
    """(exit code, what it printed) of the networks of seeds first to first + count - 1."""
    environment = dict(os.environ, RFX_NETWORKS="quantised", RFX_KERNELS=kernels, RFX_CASES=str(count),
                       RFX_SEED=str(first), OMP_WAIT_POLICY="passive")
    with tempfile.TemporaryDirectory() as folder:  # for maps in files
        done = subprocess.run([*command, suite], env=environment, cwd=folder, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def chunks(options):
    """(suite, first seed, number of networks)."""
    for suite, share in SHARES.items():
        left, first = round(options.networks * share), options.seed
        while left > 0:
            count = min(CHUNK, left)
            yield suite, first, count
            first, left = first + count, left - count


class Counts:
    """What ran with one kernel set."""

    def __init__(self):
        self.networks = self.plans = self.failed = 0
        self.prints = {}  # of test_session, by the first seed

    def add(self, chunk, code, text):
        suite, first, count = chunk
        if code != 0:
            self.failed += 1
            print(f"FAILED: RFX_NETWORKS=quantised RFX_CASES={count} RFX_SEED={first} {suite}", flush=True)
            print(text[-1500:], flush=True)
            return
        self.networks += count
        found = re.search(r"(\d+) plans ran; fingerprint of all outputs ([0-9a-f]+)", text)
        if found:
            self.plans += int(found.group(1))
            self.prints[first] = found.group(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", default="avx512vnni,avx512,avx2,base,neon")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("suites")
    options = parser.parse_args()
    words = shlex.split(options.suites)
    command = [*words[:-1], str(pathlib.Path(words[-1]).resolve())]
    failed, prints = 0, {}
    for kernels in options.kernels.split(","):
        counts, start = Counts(), time.monotonic()
        if run_chunk(command, "test_random_tiles", options.seed, 1, kernels)[0] == SKIPPED:
            print(f"{kernels}: not on this processor", flush=True)
            continue
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            everything = list(chunks(options))
            for chunk, done in zip(everything, pool.map(lambda c: run_chunk(command, *c, kernels), everything)):
                counts.add(chunk, *done)
        print(f"{kernels}: {counts.networks} networks, {counts.plans} plans of test_session, {counts.failed} processes "
              f"failed, {time.monotonic() - start:.0f} s", flush=True)
        failed += counts.failed
        prints[kernels] = counts.prints
    for kernels, mine in prints.items():
        other = next(iter(prints))
        different = [first for first in mine if mine[first] != prints[other].get(first)]
        if different:
            print(f"FAILED: {kernels} and {other} give other outputs, first of seeds {different[0]} and up")
            failed += 1
    if prints:
        print(f"random quantised networks: {len(prints)} kernel sets ({', '.join(prints)}), "
              f"{'no byte differs' if failed == 0 else f'{failed} failed'}")
    return 1 if failed or not prints else 0


if __name__ == "__main__":
    sys.exit(main())
