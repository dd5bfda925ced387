#!/usr/bin/env python3
"""What a change of structure must not change: recorded before the change, compared after it.

    gates.py record PROGRAM LIBRARY FOLDER      (build/rfexec build/librfexec.so /tmp/before)
    gates.py compare FOLDER FOLDER              (before, after)

`record` writes three files: fingerprints.txt has the fingerprints of all built-in networks
(`selftest --all`), plans.json the plans of a fixed list of networks, sizes, budgets and options,
sizes.json the lines of each folder of the product's C, and the bytes of the library and the program.
It is run in the root of the tree and takes about two minutes.

`compare` prints the sizes side by side. It exits with 1 when a fingerprint or a plan differs, or when
an arena is larger by more than 1 %. A plan is compared without what follows from offsets in its
arena: the arena's bytes, its lower bound, and peaks of memory.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys

SIZES = ["224x224", "512x640", "2048x1536"]
OPTIONS = ["", "--memory 40MiB", "--memory 128MiB", "--memory 1GiB", "--untiled", "--untiled --row-by-row",
           "--untiled --no-inplace", "--tiles 4x4", "--bands 16", "--bands 8 --tight"]
FOLDERS = ["layers", "rf_analysis", "tiler", "rfexec", "tools"]
FROM_OFFSETS = ("arena", "arena_lower_bound_bytes", "peak_bytes", "smallest_bytes", "over_bytes")
MOST_GROWTH = 1.01


def names_of(program):
    listed = subprocess.run([program, "models", "--json"], capture_output=True, text=True, check=True)
    return [model["name"] for model in json.loads(listed.stdout)["models"]]


def make_plan(program, case):
    """(case, exit code, the plan as JSON or None)."""
    done = subprocess.run([program, "plan", *case.split(), "--threads", "2", "--json"], capture_output=True,
                          text=True, check=False)
    return case, {"exit": done.returncode, "plan": json.loads(done.stdout) if done.stdout else None}


def record_plans(program):
    cases = [f"{name} --size {size} {options}".strip() for name in names_of(program) for size in SIZES
             for options in OPTIONS]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(pool.map(lambda case: make_plan(program, case), cases))


def count_lines(folder):
    lines = {}
    for at, _, files in os.walk(folder):
        paths = [os.path.join(at, name) for name in files if name.endswith((".c", ".h"))]
        if paths:
            lines[at] = sum(sum(1 for _ in open(path, encoding="utf-8")) for path in paths)
    return lines


def record(args):
    os.makedirs(args.folder, exist_ok=True)
    bits = subprocess.run([args.program, "selftest", "--all", "--json"], capture_output=True, text=True, check=False)
    size = subprocess.run(["size", args.library], capture_output=True, text=True, check=True)
    sizes = {"library text": int(size.stdout.splitlines()[1].split()[0]),
             "program file": os.path.getsize(args.program)}
    for folder in FOLDERS:
        lines = count_lines(folder)
        sizes[f"lines {folder}"] = sum(lines.values())
        sizes.update({f"lines {at}": n for at, n in lines.items() if at != folder})
    for name, text in (("fingerprints.txt", bits.stdout), ("sizes.json", json.dumps(sizes, indent=1)),
                       ("plans.json", json.dumps(record_plans(args.program)))):
        with open(os.path.join(args.folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def without_offsets(value):
    if isinstance(value, dict):
        return {key: without_offsets(item) for key, item in value.items() if key not in FROM_OFFSETS}
    return [without_offsets(item) for item in value] if isinstance(value, list) else value


def arena_of(made):
    plan = (made["plan"] or {}).get("plan")
    return plan["breakdown"]["arena"] if plan else 0


def compare_plans(before, after):
    """The number of plans that differ, or whose arena is too large."""
    bad = smaller = larger = 0
    for case, old in before.items():
        new = after.get(case)
        if new is None or without_offsets(old) != without_offsets(new):
            print(f"plan differs: {case}")
            bad += 1
            continue
        a, b = arena_of(old), arena_of(new)
        smaller += b < a
        larger += b > a
        if b > MOST_GROWTH * a:
            print(f"arena larger: {case}: {a} bytes before, {b} bytes now")
            bad += 1
    print(f"{len(before)} plans, {bad} bad; arenas: {smaller} smaller, {larger} larger")
    return bad


def compare(args):
    old, new = (json.loads(read(folder, "sizes.json")) for folder in (args.before, args.after))
    for name in sorted(set(old) | set(new)):
        if old.get(name) != new.get(name):
            print(f"{name}: {old.get(name, 0)} -> {new.get(name, 0)}")
    bits = read(args.before, "fingerprints.txt") != read(args.after, "fingerprints.txt")
    if bits:
        print("fingerprints differ")
    bad = compare_plans(*(json.loads(read(folder, "plans.json")) for folder in (args.before, args.after)))
    return 1 if bits or bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record")
    for name in ("program", "library", "folder"):
        one.add_argument(name)
    one.set_defaults(call=record)
    two = commands.add_parser("compare")
    for name in ("before", "after"):
        two.add_argument(name)
    two.set_defaults(call=compare)
    args = parser.parse_args()
    return args.call(args)


if __name__ == "__main__":
    sys.exit(main())
