#!/usr/bin/env python3
"""Measures what the units of the cost model take on this processor, per instruction set.

    calibrate.py PROGRAM [--runs N] [--keep FILE] [--sets LIST] [--others HEADER [--tiles]] > cost_constants.h

Runs `bench --layers` of some networks in several plans with one thread, with the kernels that the processor
has (environment RFX_KERNELS), and fits constants that are not negative to the processor times: least squares
over the layers, what runs do beside layers, and whole runs, each in shares of its run. Processor times hardly
depend on what else the machine does; a machine that does nothing else is better all the same, as caches are
shared. A unit that no run contains keeps the ratio to the multiply-add of the set above it. `--keep` saves the
measurements, and reads them instead of measuring when the file is there. Sets that are not measured here, because
the processor has not got them or --sets leaves them out, are taken over from the header that --others names:
tiler/cost/cost_constants.h, as a rule (write to another file first: the shell empties what > names). `--tiles`
measures only what Winograd's tiles take, as many times its multiply-add, and leaves all else of that header as it is.

Instruction sets that were never measured have the constants of the table's first, which is avx2 where it was
measured: neon, which cannot be measured on x86, has vectors half as wide and more units, and its caches are of the
same kind.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys

UNITS = ["direct_mac", "winograd_mac", "openblas_mac", "channel_mac", "pool_tap", "few_mac", "other_mac",
         "conv_element", "tile_element", "tile_factor", "element", "act_element", "sum_element", "image_element",
         "run", "step", "meeting", "weight_byte", "shared_byte", "plain_byte", "cold_byte", "ahead_byte",
         "dram_byte", "load_byte", "spill_byte", "decoding"]
SETS = ["avx512", "avx2", "base"]
NETWORKS = [("mobilenet_v2", "1024x1024"), ("mobilenet_v2", "384x384"), ("resnet50", "512x512"),
            ("resnet18", "1024x1024"), ("unet", "384x384"), ("efficientnet_b0", "768x768"),
            ("densenet121", "640x640"), ("squeezenet1_1", "1536x1536"), ("vgg16", "320x320"),
            ("nafnet", "256x320"), ("unet_instance", "512x640"), ("convnext_tiny", "512x512")]
PLANS = ["--untiled --no-groups", "--untiled", "--bands 64 --no-groups", "--bands 8 --no-groups",
         "--bands 16", "--bands 2", "--bands 32 --tight --weights-by-stage --no-groups",
         "--tiles 4x4 --no-groups"]
OPENBLAS = ["--bands 32 --no-groups --conv openblas"]
# Winograd's units are fitted beside the others, which stay as they are.
TILES = " by tiles"  # of a set's measurements
TILE_UNITS = {"winograd_mac", "tile_element", "tile_factor"}
TILE_NETWORKS = [("resnet18", "1024x1024"), ("resnet50", "512x512"), ("unet", "512x512"), ("unet", "256x256"),
                 ("vgg16", "320x320")]
TILE_PLANS = ["--untiled --conv winograd", "--bands 16 --conv winograd", "--bands 64 --conv winograd",
              "--bands 128 --conv winograd"]
LEAST_SHARE = 0.002  # of a run: rows that take less weigh as if they took this
WHOLE_WEIGHT = 6.0   # of a whole run, against rows of it
FAR = 0.15           # a miss beyond this share makes a row count less
ROUNDS = 4
# Picoseconds that a unit is expected to take, in order of magnitude. Each counts like one row: it decides only
# where the measurements cannot tell units apart that come together, which would else be 0 or far too much.
EXPECTED = {"channel_mac": 10, "pool_tap": 100, "few_mac": 15, "other_mac": 15, "conv_element": 300,
            "winograd_mac": 8, "tile_element": 60, "tile_factor": 60, "element": 200, "act_element": 300,
            "sum_element": 150,
            "run": 3e4, "step": 5e5, "weight_byte": 20, "shared_byte": 5, "plain_byte": 12, "cold_byte": 12,
            "ahead_byte": 12, "dram_byte": 25}
# Picoseconds that two threads take to meet: runs of one thread, which are measured, have no meetings. On a virtual
# machine it hangs on the minutes: 1.1 to 2.3 us where nothing disturbs (what layers of mobilenet_v2 and
# efficientnet_b0 in steps of 2 and 8 rows take beyond half of one thread's time), some 5 us at other times.
USUAL_MEETING = 5e6
# Of a byte written to a file or read from it: 0.4 GB/s, so that a slow disk is no bad surprise. On the disk of the
# machine at hand 0.02 to 0.5 GB/s were written and 2 to 4 read back, by whether its cache had them still.
USUAL_SPILL = 2500


def bench(program, network, size, plan, kernels, threads, runs):
    """The document of one `bench --layers`, or None where the plan is refused."""
    command = [program, "bench", network, "--size", size, *plan.split(), "--threads", str(threads),
               "--runs", str(runs), "--layers", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "RFX_KERNELS": kernels})
    if done.returncode != 0:
        print(f"refused: {' '.join(command)}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def measure(program, kernels, runs, networks, plans):
    """[(counts, seconds, weight)] of all networks and plans."""
    rows = []
    for network, size in networks:
        for plan in plans:
            if kernels == "base" and "openblas" in plan:
                continue  # the same as without
            document = bench(program, network, size, plan, kernels, 1, runs)
            if document is None or document["machine"]["kernels"] != kernels:
                continue
            rows += rows_of(document, plan)
            print(f"{kernels} {network} {size} {plan}: {document['measured']['cpu_seconds']:.3f} s",
                  file=sys.stderr, flush=True)
    return rows


def rows_of(document, plan):
    total = document["measured"]["cpu_seconds"]
    whole, rows = {}, []

    def take(counts, seconds):
        rows.append((counts, seconds, 1.0 / (total * max(seconds, LEAST_SHARE * total)) ** 0.5))

    def add(counts):
        for unit, n in counts.items():
            whole[unit] = whole.get(unit, 0.0) + n

    for layer in document["layers"]:
        add(layer["counts"])
        counts = {u: n for u, n in layer["counts"].items() if u != "load_byte"}
        if "--tight" not in plan:  # else copies of rows are measured elsewhere
            take(counts, layer["cpu_seconds"])
    rest = {item["name"]: item["cpu_seconds"] for item in document["rest"]}
    add(document["image_counts"])
    take(document["image_counts"], rest["reading the image"])
    if whole.get("load_byte"):
        take({"load_byte": whole["load_byte"]}, rest["loading weights by stage"])
    rows.append((whole, total, WHOLE_WEIGHT / total))
    return rows


def predict(constants, counts):
    return sum(constants[UNITS.index(u)] * n for u, n in counts.items()) * 1e-12


def solve(rows, known=None):
    """Constants, and which units were seen; those in `known`, by unit, stay. Rows that the fit misses by far,
    because something else disturbed them, count less in the next fit."""
    known = known or {}
    seen = {unit for counts, _, _ in rows for unit in counts}
    rows = rows + [({u: 1.0}, p * 1e-12, 1e12 / p) for u, p in EXPECTED.items() if u in seen and u not in known]
    weights = [1.0] * len(rows)
    for _ in range(ROUNDS):
        constants = least_squares([(c, s, k * w) for (c, s, k), w in zip(rows, weights)], known)
        for i, (counts, seconds, _) in enumerate(rows):
            predicted = predict(constants, counts)
            miss = abs(predicted - seconds) / max(predicted, seconds, 1e-9)
            weights[i] = min(1.0, FAR / max(miss, 1e-9))
    return constants, [unit in seen for unit in UNITS]


def least_squares(rows, fixed):
    """With non-negative coefficients, one coordinate after the other; those in `fixed` stay."""
    n = len(UNITS)
    gram, right = [[0.0] * n for _ in range(n)], [0.0] * n
    for counts, seconds, weight in rows:
        known = [(UNITS.index(u), v * weight) for u, v in counts.items()]
        for i, a in known:
            right[i] += a * seconds * weight
            for j, b in known:
                gram[i][j] += a * b
    x = [fixed.get(unit, 0.0) * 1e-12 for unit in UNITS]
    for _ in range(20000):
        for i in range(n):
            if gram[i][i] > 0.0 and UNITS[i] not in fixed:
                rest = right[i] - sum(gram[i][j] * x[j] for j in range(n) if j != i)
                x[i] = max(0.0, rest / gram[i][i])
    return [c * 1e12 for c in x]


def dram_speed(program, kernels, runs):
    """Of memory for two threads, one thread's as 1."""
    ratios = []
    for _ in range(max(3, runs)):
        one, two = (bench(program, "squeezenet1_1", "224x224", "--untiled", kernels, threads, 1)
                    for threads in (1, 2))
        ratios.append(two["machine"]["memory_gb_per_second"] / one["machine"]["memory_gb_per_second"])
    return max(1.0, sorted(ratios)[len(ratios) // 2])


def report_fit(kernels, rows, constants):
    errors = []
    for counts, seconds, weight in rows:
        if abs(weight * seconds - WHOLE_WEIGHT) < 1e-9:
            predicted = predict(constants, counts)
            errors.append(predicted / seconds)
    errors.sort()
    if errors:
        print(f"{kernels}: predicted / measured of whole runs: least {errors[0]:.2f}, "
              f"median {errors[len(errors) // 2]:.2f}, most {errors[-1]:.2f} of {len(errors)}", file=sys.stderr)


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            facts = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.*?)\s*$", lines.read(), re.M))
        return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"
    except (OSError, KeyError):
        return platform.machine()


def caches():
    found = []
    for index in range(8):
        base = f"/sys/devices/system/cpu/cpu0/cache/index{index}/"
        try:
            with open(base + "level", encoding="utf-8") as level, open(base + "size", encoding="utf-8") as size:
                if level.read().strip() != "1":
                    found.append(size.read().strip())
        except OSError:
            break
    return " and ".join(found) or "unknown"


def read_others(path):
    """Of a header: by instruction set where it was measured, what memory gives two threads, and constants."""
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        text = file.read()
    sets = {}
    for where, kernels, memory, body in re.findall(
            r'    /\* ([^*]*) \*/\n    \{"(\w+)", ([\d.]+),\n     \{\n(.*?)     \}\}', text, re.S):
        values = dict(re.findall(r"\[RFX_COST_(\w+)\] = ([^,]+),", body))
        sets[kernels] = " ".join(where.split()), float(memory), [float(values[unit.upper()]) for unit in UNITS]
    return sets


def print_header(sets):
    print("""/* What the units of the cost model take, in picoseconds of one thread. Made by
 * tools/scripts/calibrate.py; not to be edited. What meetings and bytes of spilled maps take is
 * assumed. */
#ifndef RFX_TILER_COST_COST_CONSTANTS_H
#define RFX_TILER_COST_COST_CONSTANTS_H

/* clang-format off */
static const struct rfx_cost_set {
    const char *kernels; /* the first: for kernels of any other name */
    double dram_speed;   /* of memory for two threads or more, one thread's as 1 */
    double picoseconds[RFX_COST_UNITS];
} cost_sets[] = {""")
    for kernels, (where, memory, constants) in sorted(sets.items(), key=lambda item: item[0] != "avx2"):
        print(f'    /* {where} */\n    {{"{kernels}", {memory:.3g},\n     {{')
        for unit, value in zip(UNITS, constants):
            print(f"         [RFX_COST_{unit.upper()}] = {value:.4g},")
        print("     }},")
    print("};\n/* clang-format on */\n#endif")


def fit_tiles(kernels, rows, constants, seen):
    """Puts the units that tiles alone have into the constants."""
    fixed = {unit: constants[i] for i, unit in enumerate(UNITS) if unit not in TILE_UNITS}
    fitted, there = solve(rows, fixed)
    for i, unit in enumerate(UNITS):
        if unit in TILE_UNITS and there[i]:
            constants[i], seen[i] = fitted[i], True
    report_fit(kernels + TILES, rows, fitted)


def refit_tiles(options, kept, sets):
    """The units that tiles alone have, into sets that are there."""
    mac = UNITS.index("winograd_mac")
    for kernels in SETS:
        if kernels not in options.sets.split(",") or kernels not in sets:
            continue
        key = kernels + TILES
        measure_once(options, kept, key, kernels, TILE_NETWORKS, TILE_PLANS)
        where, memory, constants = sets[kernels]
        fitted = list(constants)
        fit_tiles(kernels, kept[key], fitted, [True] * len(UNITS))
        sets[kernels] = where, memory, [
            fitted[i] * constants[mac] / fitted[mac] if unit in TILE_UNITS else constants[i]
            for i, unit in enumerate(UNITS)]


def read_kept(path):
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_kept(path, kept):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(kept, file)


def measure_once(options, kept, key, kernels, networks, plans):
    """Into `kept`, unless it is there."""
    if key not in kept:
        kept[key] = measure(options.program, kernels, options.runs, networks, plans)
        write_kept(options.keep, kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--others", metavar="HEADER")
    parser.add_argument("--tiles", action="store_true")
    options = parser.parse_args()
    kept = read_kept(options.keep)
    if options.tiles and not options.others:
        parser.error("--tiles leaves all else as --others has it: name that header")
    if options.tiles:
        sets = read_others(options.others)
        refit_tiles(options, kept, sets)
        print_header(sets)
        return
    constants, measured = {}, []
    for kernels in SETS:
        asked = kernels in options.sets.split(",")
        jobs = [(kernels, NETWORKS, PLANS + OPENBLAS), (kernels + TILES, TILE_NETWORKS, TILE_PLANS)]
        for key, networks, plans in jobs:
            if asked:
                measure_once(options, kept, key, kernels, networks, plans)
        if not kept.get(kernels):
            continue
        constants[kernels], seen = solve(kept[kernels])
        measured.append(kernels)
        report_fit(kernels, kept[kernels], constants[kernels])
        if kept.get(kernels + TILES):
            fit_tiles(kernels, kept[kernels + TILES], constants[kernels], seen)
        above = constants[measured[0]]
        for i, known in enumerate(seen):
            if not known:
                constants[kernels][i] = above[i]
    if not measured:
        sys.exit("nothing was measured")
    sets = read_others(options.others)
    memory = dram_speed(options.program, measured[0], options.runs)
    where = f"{processor()}; caches {caches()}"
    for kernels in measured:
        constants[kernels][UNITS.index("meeting")] = USUAL_MEETING
        constants[kernels][UNITS.index("spill_byte")] = USUAL_SPILL
        constants[kernels][UNITS.index("decoding")] = 1  # is counted in picoseconds
        sets[kernels] = where, memory, constants[kernels]
    print_header(sets)


if __name__ == "__main__":
    main()
