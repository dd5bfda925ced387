#!/usr/bin/env python3
"""Fingerprints of the 8-bit networks of data/: the same with every instruction set, plan and number of threads.

    quantised_fingerprints.py [--emulator PROGRAM] RFEXEC DATA     compares with DATA/quantised_fingerprints.csv
    quantised_fingerprints.py --write RFEXEC DATA                  writes it, from runs on whole maps

RFX_KERNELS selects the instruction set. Each network also runs in tiles, in bands, in strips, row by row and in the
least memory, with 1 to 3 threads.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys

NETWORKS = ("quantised_u8.onnx", "quantised_s8.onnx")
SIZES = ("97x65", "160x224", "17x19")
PLANS = (["--untiled"], ["--untiled", "--row-by-row"], ["--tiles", "3x2"], ["--bands", "8"],
         ["--bands", "8", "--strips", "3"], ["--bands", "4", "--tight"], ["--memory", "smallest"])
EMULATOR_BYTES = 32 << 20  # its own memory counts as the program's
HEADER = ["model", "size", "output", "shape", "fingerprint"]


class Failed(Exception):
    """A run failed; the text says which."""


def run(program, *arguments, code=0):
    """The JSON of a run."""
    done = subprocess.run([*program, "run", *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != code:
        raise Failed(f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def rows_of(program, data, model, size, options):
    """[model, size, output, shape, fingerprint] of each output."""
    image = f"synthetic:{size}"
    if "smallest" in options:
        threads = options[options.index("--threads"):]
        least = run(program, str(data / model), image, "--memory", "1MiB", *threads, code=4)["smallest_bytes"]
        if len(program) > 1:
            least += EMULATOR_BYTES
        options = ["--memory", str(least), *threads]
    report = run(program, str(data / model), image, *options)
    return [[model, size, output["name"], "x".join(str(d) for d in output["shape"]), output["hash"]]
            for output in report["outputs"]]


def compare(program, data):
    with open(data / "quantised_fingerprints.csv", newline="", encoding="utf-8") as file:
        header, *golden = list(csv.reader(file))
    passed = failed = 0
    for model in NETWORKS:
        for size in SIZES:
            wanted = [row for row in golden if row[:2] == [model, size]]
            for threads in "1", "2", "3":
                for plan in PLANS:
                    options = [*plan, "--threads", threads]
                    try:
                        good = header == HEADER and wanted and rows_of(program, data, model, size, options) == wanted
                        words = "other fingerprints"
                    except Failed as error:
                        good, words = False, str(error)
                    passed, failed = passed + bool(good), failed + (not good)
                    if not good:
                        print(f"FAILED: {model} {size} {' '.join(options)}: {words}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--emulator", default="")
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path)
    options = parser.parse_args()
    program = [word for word in (options.emulator, options.program) if word]
    if not options.write:
        return compare(program, options.data)
    with open(options.data / "quantised_fingerprints.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for model in NETWORKS:
            for size in SIZES:
                writer.writerows(rows_of(program, options.data, model, size, ["--untiled"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
