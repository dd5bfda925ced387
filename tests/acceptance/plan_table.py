#!/usr/bin/env python3
"""A table of what the planner chooses and of the bits that come out, for every built-in network.

    plan_table.py [--conv CHOICE] PROGRAM [NETWORK ...] > table.txt

Two builds that should not differ in behaviour print the same table: run it before and after a change of
structure and compare with diff. Per network: the fingerprints of all outputs under ten plans, and the
whole `plan --json` at three sizes and three budgets (impossible ones with their smallest budget), with
convolutions computed by CHOICE (direct, as the program's --conv has it).
"""

import argparse
import json
import subprocess

SMALL = {"yolov1": "448x448", "blazeface": "128x128", "vgg16": "113x97", "inception_v3": "141x129",
         "inception_v4": "141x129", "srgan": "49x57", "fsrcnn": "97x113", "unet": "97x113"}
PLANS = ["--untiled", "--untiled --row-by-row", "--untiled --no-inplace", "--tiles 2x2", "--tiles 3x5",
         "--bands 8", "--bands 16 --strips 2", "--bands 4 --tight", "--bands 8 --weights-by-stage",
         "--memory SMALLEST"]
SIZES = ["224x224", "512x640", "2048x1536"]
BUDGETS = ["40MiB", "128MiB", "1GiB"]


def run(program, *arguments):
    """(exit code, stdout as JSON or None) of one command; `program` may have options of its own."""
    name, *options = program
    done = subprocess.run([name, *arguments, *options, "--json"], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def smallest(program, network, size):
    """The smallest budget that the program names."""
    _, report = run(program, "run", network, f"synthetic:{size}", "--memory", "1MiB", "--threads", "2")
    return str(report["smallest_bytes"])


def print_bits(program, network):
    size = SMALL.get(network.split(":")[0], "129x161")
    for plan in PLANS:
        words = plan.split()
        if "SMALLEST" in words:
            words[-1] = smallest(program, network, size)
        code, report = run(program, "run", network, f"synthetic:{size}", "--threads", "2", *words)
        hashes = [output["hash"] for output in report["outputs"]] if report and code == 0 else []
        print(f"{network} {size} {plan}: exit {code} {' '.join(hashes)}", flush=True)


def print_plans(program, network):
    for size in SIZES:
        for budget in BUDGETS:
            code, report = run(program, "plan", network, "--size", size, "--memory", budget,
                               "--threads", "2")
            text = json.dumps(report, sort_keys=True)
            print(f"{network} {size} {budget}: exit {code} {text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--conv", default="direct", metavar="CHOICE")
    args = parser.parse_args()
    listed = subprocess.run([args.program, "models", "--json"], capture_output=True, text=True, check=True).stdout
    names = args.networks or [model["name"] for model in json.loads(listed)["models"]]
    program = [args.program, "--conv", args.conv]
    for network in names:
        print_bits(program, network)
        print_plans(program, network)


if __name__ == "__main__":
    main()
