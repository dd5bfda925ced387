#!/usr/bin/env python3
"""Whether plans that are predicted to be faster are: rank correlation over 40 plans of four networks.

    rank_plans.py PROGRAM [--conv winograd] [--threads N] [--rounds N] [--cpu] [--csv FILE] [--reuse FILE]

Every plan of PLANS is run in each round, in turn, as a process of its own (`bench --json`); measured is the
median of its rounds (with --cpu the least), predicted is the plan's predicted_seconds. Printed is Spearman's rank correlation within
each network, and over all plans of all networks, each relative to its network's first plan, the untiled run.
--reuse takes what was measured from such a FILE, and only predicts again.
--cpu takes processor time instead of elapsed time: for one thread, where other programs run at the same time.
"""

import argparse
import json
import statistics
import subprocess
import sys

NETWORKS = {"direct": [("mobilenet_v2", "1024x1024"), ("resnet50", "640x640"), ("unet", "320x320"),
                       ("efficientnet_b0", "768x768")],
            "winograd": [("resnet18", "1024x1024"), ("resnet50", "640x640"), ("unet", "320x320"),
                         ("vgg16", "320x320")]}
PLANS = ["--untiled", "--untiled --no-groups", "--bands 128", "--bands 32 --no-groups",
         "--bands 8", "--bands 2 --no-groups", "--bands 16 --strips 3 --no-groups", "--tiles 4x4 --no-groups",
         "--bands 16 --tight --weights-by-stage", "--tiles 8x8"]


def bench(options, network, size, plan):
    command = [options.program, "bench", network, "--size", size, *plan.split(), "--conv", options.conv,
               "--threads", str(options.threads), "--runs", str(options.runs), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def ranks(values):
    """1 .. n, equal values share their mean."""
    order = sorted(values)
    return [order.index(v) + 1 + (order.count(v) - 1) / 2 for v in values]


def spearman(a, b):
    return statistics.correlation(ranks(a), ranks(b))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--conv", choices=sorted(NETWORKS), default="direct")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--reuse")
    options = parser.parse_args()
    times, predicted = {}, {}
    if options.reuse:
        reuse(options, times, predicted)
        options.rounds = 0
    for done in range(options.rounds):
        for network, size in NETWORKS[options.conv]:
            for plan in PLANS:
                document = bench(options, network, size, plan)
                measured = document["measured"]
                times.setdefault((network, plan), []).append(
                    measured["cpu_seconds_min" if options.cpu else "seconds"])
                predicted[network, plan] = document["plan"]["predicted_seconds"]
        print(f"round {done + 1} of {options.rounds}", file=sys.stderr, flush=True)
    report(times, predicted, options)


def reuse(options, times, predicted):
    """Times from a file of --csv; predictions of plans that are made but not run."""
    with open(options.reuse, encoding="utf-8") as file:
        for line in file.read().splitlines()[1:]:
            network, size, plan, measured, _ = line.split(",")
            times[network, plan] = [float(measured)]
            command = [options.program, "plan", network, "--size", size, *plan.split(), "--conv",
                       options.conv, "--threads", str(options.threads), "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            predicted[network, plan] = json.loads(done.stdout)["plan"]["predicted_seconds"]


def report(times, predicted, options):
    all_measured, all_predicted, lines = [], [], []
    for network, size in NETWORKS[options.conv]:
        middle = min if options.cpu else statistics.median  # what disturbs processor times only adds to them
        measured = [middle(times[network, plan]) for plan in PLANS]
        guessed = [predicted[network, plan] for plan in PLANS]
        print(f"{network} {size}, {options.threads} threads, {'processor' if options.cpu else 'elapsed'} time")
        print(f"  {'plan':40} {'measured':>9} {'predicted':>9}  {'ratio':>6} {'predicted':>9}")
        for plan, m, p in zip(PLANS, measured, guessed):
            print(f"  {plan:40} {m:9.4f} {p:9.4f}  {m / measured[0]:6.3f} {p / guessed[0]:9.3f}")
            lines.append(f"{network},{size},{plan},{m:.6f},{p:.6f}")
        all_measured += [m / measured[0] for m in measured]
        all_predicted += [p / guessed[0] for p in guessed]
        print(f"  rank correlation {spearman(measured, guessed):.3f}\n")
    print(f"all {len(all_measured)} plans: rank correlation {spearman(all_measured, all_predicted):.3f}")
    if options.csv:
        with open(options.csv, "w", encoding="utf-8") as file:
            file.write("network,size,plan,measured_seconds,predicted_seconds\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
