#!/usr/bin/env python3
"""How far the smallest budget that is named lies above what the run takes, for every network.

    named_budgets.py [--size HxW] [--threads N,N,...] [--networks NAME,NAME,...] [--files WAY,WAY,...] PROGRAM

Each built-in network and data/*.onnx runs at the budget that the refusal of 1 MiB names, with 1 and 2 threads:
without a file (none), writing maps as TIFF (written), reading a TIFF (read), one that is compressed (packed), or
both reading and writing (both). The peak is the larger one of the
kernel's account of the ended process and the program's own reading of VmHWM. The least budget of a network that
loads in more than 24 MiB is asked for with what the refusal names.
Named minus used must be at least 0, at most 2 MiB without a file and 3 MiB with a TIFF. The last lines are the
largest of each way. The exit code is 1 where one is over, refused or further away; each of these begins with MISS.
"""

import argparse
import glob
import os
import shutil
import struct
import sys
import tempfile
import zlib

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2))
sys.path.insert(0, os.path.join(ROOT, "tools", "scripts", "soak"))

from program import Program  # noqa: E402

MOST = {"none": 2.0, "written": 3.0, "read": 3.0, "packed": 3.0, "both": 3.0}  # MiB
SIZES = {"vae_decoder": "8x8", "real_esrgan": "64x64", "swinir_light": "64x64"}  # many MACs a pixel
MIB = 1 << 20


def write_tiff(path, rows, columns, channels, packed):
    """A picture of uint8 samples in strips of 16 rows, uncompressed or by deflate."""
    samples = bytes((y * 7 + x * 3 + c * 50) % 256 for y in range(rows) for x in range(columns) for c in range(channels))
    strip = 16 * columns * channels
    strips = [samples[s:s + strip] for s in range(0, len(samples), strip)]
    strips = [zlib.compress(s) for s in strips] if packed else strips
    samples = b"".join(strips)
    counts = [len(s) for s in strips]
    offsets = [8 + sum(counts[:i]) for i in range(len(counts))]
    table = 8 + len(samples)
    extra, entries = b"", []
    at = table + 2 + 10 * 12 + 4

    def long_list(values):
        nonlocal extra
        if len(values) == 1:
            return values[0]
        place = at + len(extra)
        extra += struct.pack(f"<{len(values)}I", *values)
        return place

    short_bits = 8
    if channels > 2:
        short_bits = at + len(extra)
        extra += struct.pack(f"<{channels}H", *[8] * channels)
    for tag, kind, count, value in [
            (256, 4, 1, columns), (257, 4, 1, rows), (258, 3, channels, short_bits), (259, 3, 1, 8 if packed else 1),
            (262, 3, 1, 2 if channels == 3 else 1), (273, 4, len(offsets), long_list(offsets)),
            (277, 3, 1, channels), (278, 4, 1, 16), (279, 4, len(counts), long_list(counts)), (284, 3, 1, 1)]:
        entries.append(struct.pack("<HHII", tag, kind, count, value))
    with open(path, "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", table) + samples)
        file.write(struct.pack("<H", len(entries)) + b"".join(entries) + struct.pack("<I", 0) + extra)


def clear(folder):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif name.startswith("out."):
            os.unlink(path)


def named(program, arguments):
    """The budget that the refusal names, or None."""
    for asked in ["1MiB", "64MiB"]:
        ended = program.run([*arguments, "--memory", asked])
        if ended.code == 4 and ended.document is not None:
            return ended.document["smallest_bytes"]
    return None


def measure(program, arguments, folder, most):
    """(named, used) in bytes, or why there is none. Peaks of one command differ by 0.3 MiB, with what lies in the
    system's cache: where one is further away than `most`, the largest of three counts."""
    budget = named(program, arguments)
    if budget is None:
        return None, program.words()[-200:]
    used = 0
    for _ in range(3):
        clear(folder)
        ended = program.run([*arguments, "--memory", str(budget)])
        if ended.code != 0:
            return None, f"exit code {ended.code} in {budget}: {program.words()[-200:]}"
        used = max(used, ended.peak_bytes, ended.document["measured"]["peak_rss_bytes"])
        if budget - used <= most * MIB:
            break
    return budget, used


def inputs_of(program, model, size):
    """(rows, columns, channels, whether all outputs are maps that a TIFF takes)."""
    ended = program.run(["plan", model, "--size", size, "--for-output", "a.tif", "--json"])
    maps = ended.code == 0
    if not maps:
        ended = program.run(["plan", model, "--size", size, "--json"])
    if ended.code != 0:
        return None
    return (*ended.document["input"][2:], ended.document["input"][1], maps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="128x128", metavar="HxW", help="of all but those with many MACs a pixel")
    parser.add_argument("--threads", default="1,2", metavar="N,N,...")
    parser.add_argument("--networks", default="", metavar="NAME,...", help="of these alone")
    parser.add_argument("--files", default=",".join(MOST), metavar="WAY,...")
    parser.add_argument("program")
    args = parser.parse_args()
    missed, done, largest, least = 0, 0, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        program = Program(args.program, folder)
        models = [model["name"] for model in program.document(["models", "--json"])["models"]]
        models += sorted(glob.glob(os.path.join(ROOT, "data", "*.onnx")))
        for model in args.networks.split(",") if args.networks else models:
            size = SIZES.get(model, args.size)
            facts = inputs_of(program, model, size)
            if facts is None:
                print(f"{model}: takes no image of {size}")
                continue
            rows, columns, channels, maps = facts
            picture = os.path.join(folder, "picture.tif")
            for way in args.files.split(","):
                if way in ("written", "both") and not maps:
                    continue
                write_tiff(picture, rows, columns, channels, way == "packed")
                given = picture if way in ("read", "packed", "both") else f"synthetic:{rows}x{columns}"
                files = ["-o", os.path.join(folder, "out.tif")] if way in ("written", "both") else []
                for threads in args.threads.split(","):
                    command = ["run", model, given, *files, "--threads", threads, "--json"]
                    budget, used = measure(program, command, folder, MOST[way])
                    what = f"{os.path.basename(model):18} {way:8} {threads} threads"
                    done += 1
                    if budget is None:
                        missed += 1
                        print(f"MISS {what}: {used}", flush=True)
                        continue
                    more = (budget - used) / MIB
                    bad = more < 0 or more > MOST[way]
                    missed += bad
                    largest[way] = max(largest.get(way, (more, what)), (more, what))
                    least[way] = min(least.get(way, (more, what)), (more, what))
                    print(f"{'MISS ' if bad else ''}{what}: named {budget / MIB:.2f}, used {used / MIB:.2f}, "
                          f"between {more:.2f} MiB", flush=True)
        program.close()
    for way, (more, what) in largest.items():
        print(f"{way}: {least[way][0]:.2f} to {more:.2f} MiB of {MOST[way]:.0f} ({' '.join(what.split())})")
    print(f"{done} runs, {missed} missed")
    sys.exit(1 if missed or not done else 0)


if __name__ == "__main__":
    main()
