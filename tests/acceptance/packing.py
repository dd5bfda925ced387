#!/usr/bin/env python3
"""How many generated packing problems `rfexec alloc` solves, and how soon: the table of docs/notes/packing.md.

    packing.py [OPTIONS] PROGRAM MAKE_PACKING [FAMILY ...] > table.md

PROGRAM is build/rfexec, MAKE_PACKING is build/tests/make_packing, which knows the families (the program
without arguments lists them; all of them by default). Problems are made from seeds 1 to --seeds with
--records records. The capacity is the one that is known to be enough: the height of the rectangle that a
problem was cut out of. For each strategy (the searches that --strategy names, "best" for all together) a
row of the table has how many were solved, which were not, and the median and the longest time of those:
seconds by the clock, in brackets of processor time.

With --large N, instead: N random records, the arena over the bound, and the seconds it took.

Exit code 1 when a family has fewer than --at-least of the seeds solved by "best".
"""

import argparse
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LONG_SECONDS = 86400  # by the clock, where only processor time is limited


def make(maker, family, seed, records, path):
    """Writes a problem; the capacity that is enough."""
    with open(path, "w", encoding="utf-8") as file:
        done = subprocess.run([maker, family, str(seed), *records], stdout=file, stderr=subprocess.PIPE,
                              check=True)
    return int(done.stderr)


def alloc(program, path, *arguments, processor_seconds=None):
    """(exit code, seconds by the clock, seconds of processor time, words) of one packing."""
    def limit():
        if processor_seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, processor_seconds + 1))

    begun = time.monotonic()
    with tempfile.TemporaryFile() as words:
        child = subprocess.Popen([program, "alloc", path, *arguments, "-o", path + ".placed"], stderr=words,
                                 preexec_fn=limit)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        words.seek(0)
        text = words.read().decode()
    return child.returncode, time.monotonic() - begun, used.ru_utime + used.ru_stime, text


def times(pairs):
    """Median and longest, by the clock (of processor time)."""
    if not pairs:
        return "-"
    clock, cpu = zip(*pairs)
    return (f"{statistics.median(clock):.2f} ({statistics.median(cpu):.2f}), "
            f"{max(clock):.2f} ({max(cpu):.2f})")


def solve_family(args, family, path):
    """Rows of the table; whether enough was solved."""
    solved = {strategy: [] for strategy in args.strategy}
    left = {strategy: [] for strategy in args.strategy}
    for seed in range(1, args.seeds + 1):
        capacity = make(args.make_packing, family, seed, args.records, path)
        if capacity == 0:
            return True
        for strategy in args.strategy:
            seconds = args.seconds if args.processor_seconds is None else LONG_SECONDS
            code, clock, cpu, words = alloc(args.program, path, "--capacity", str(capacity), "--strategy",
                                            strategy, "--time-limit", str(seconds),
                                            processor_seconds=args.processor_seconds)
            if code not in (0, 4, -signal.SIGXCPU):
                sys.exit(f"{family} {seed} {strategy}: exit code {code}: {words}")
            if code == 0:
                solved[strategy].append((clock, cpu))
            else:
                left[strategy].append(str(seed))
    for strategy, pairs in solved.items():
        seeds = f" (not {', '.join(left[strategy])})" if left[strategy] else ""
        print(f"| {family} | {strategy} | {len(pairs)} of {args.seeds}{seeds} | {times(pairs)} |", flush=True)
    return len(solved.get("best", [])) >= args.at_least or "best" not in solved


def place_many(args, family, path):
    capacity = make(args.make_packing, family, 1, [str(args.large)] * 2, path)
    if capacity != 0:
        return
    code, clock, cpu, words = alloc(args.program, path)
    if code != 0:
        sys.exit(f"{family}: exit code {code}: {words}")
    arena = int(words.split(" items in ")[1].split()[0])
    bound = int(words.split("lower bound ")[1].split(";")[0].split(",")[0])
    print(f"| {family} | {args.large} | {arena / bound:.4f} | {clock:.1f} ({cpu:.1f}) |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("make_packing")
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--processor-seconds", type=int, metavar="N",
                        help="end each packing after N seconds of processor time of all its threads, in "
                             "place of --seconds by the clock: on busy machines as much work is done "
                             "as on quiet ones")
    parser.add_argument("--records", nargs=2, default=["150", "450"], metavar=("MIN", "MAX"))
    parser.add_argument("--strategy", action="append", metavar="NAME")
    parser.add_argument("--at-least", type=int, default=0)
    parser.add_argument("--large", type=int, metavar="N")
    args = parser.parse_args()
    args.strategy = args.strategy or ["best"]
    listed = subprocess.run([args.make_packing], capture_output=True, text=True, check=True).stdout.split()
    enough = True
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "problem.csv")
        if args.large:
            print("| family | records | arena / bound | s by the clock (of processor time) |\n|---|---|---|---|")
        else:
            print("| family | strategy | solved | median, longest s (of processor time) |\n|---|---|---|---|")
        for family in args.families or listed:
            if args.large:
                place_many(args, family, path)
            else:
                enough = solve_family(args, family, path) and enough
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
