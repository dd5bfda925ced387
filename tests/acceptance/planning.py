#!/usr/bin/env python3
"""How long planning takes, how much memory it needs, and how soon a signal stops it.

    planning.py [--short] [--seconds S] PROGRAM [NETWORK ...]

1. Every built-in network (or those that are named) at 224, 1024 and 8192 rows and columns, with twelve
   budgets from an impossible one to an ample one, a process each: planned or refused within S seconds (1).
2. Large graphs, as ONNX files that this script writes: a chain of 10,000, a concatenation of 10,000, a dense
   block of 1,000 layers, 2,000 outputs: planned within 3 S and, beside what loading took, 32 MiB.
3. SIGTERM at several moments of planning, advising, making curves, loading, placing and drawing: exit code 5
   within 0.25 S.

Seconds of 1 and 2 are of processor time, user's and system's, of each process: what others do on the machine
counts little, and the time by the clock is printed beside. Seconds of 3 are by the clock. --short takes a share
that lasts some seconds.
The exit code is 1 when anything was missed; every miss is printed.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

from onnx_bytes import FLOAT, constant, node, write_model

PLAN_SECONDS, LARGE_SECONDS, STOP_SECONDS = 1.0, 3.0, 0.25
LARGE_BYTES = 32 << 20
SIZES = [224, 1024, 8192]
MOMENTS = [0.01, 0.03, 0.1, 0.2, 0.35, 0.5]


def ones(name, channels):
    """Weights of a convolution from so many channels to one."""
    data = b"\x0a\xd7\x23\x3c" * channels
    return constant(name, FLOAT, (1, channels, 1, 1), data)


def write_chain(path, n):
    names = ["x"] + [f"t{i}" for i in range(n)]
    write_model(path, [node("Sigmoid", [names[i]], names[i + 1]) for i in range(n)], names[-1:])


def write_concat(path, n):
    parts = [f"t{i}" for i in range(n)]
    write_model(path, [node("Relu", ["x"], part) for part in parts] + [node("Concat", parts, "y", axis=1)], ["y"])


def write_outputs(path, n):
    parts = [f"t{i}" for i in range(n)]
    write_model(path, [node("Relu", ["x"], part) for part in parts], parts)


def write_dense(path, n):
    nodes, constants, made = [], [], ["x"]
    for i in range(n):
        nodes += [node("Concat", made, f"c{i}", axis=1), node("Conv", [f"c{i}", f"w{i}"], f"t{i}")]
        constants.append(ones(f"w{i}", 3 + i))
        made.append(f"t{i}")
    write_model(path, nodes, made[-1:], constants)


def peak_so_far(pid):
    """The most memory that a process has had so far (what wait4 says counts this one's, too)."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return max([int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM")], default=0)
    except OSError:
        return 0


def measure(arguments):
    """(exit code, processor seconds, seconds by the clock, peak bytes, messages) of a command."""
    peak, pid, begun = 0, 0, time.monotonic()
    with tempfile.TemporaryFile() as messages:
        child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=messages)
        while pid == 0:
            peak = max(peak, peak_so_far(child.pid))
            time.sleep(0.002)
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        clock = time.monotonic() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        text = messages.read().decode(errors="replace")
    return child.returncode, usage.ru_utime + usage.ru_stime, clock, peak, text


def smallest_budget(program, network, size):
    text = measure([program, "plan", network, "--size", size, "--memory", "1MiB"])[4]
    words = text.split("needs at least ")
    return int(words[1].split()[0]) if len(words) > 1 else None


def budgets(smallest, count):
    """Three that are impossible, the smallest, and more and more to 64 times as much."""
    rest = [int(smallest * 64 ** (i / 8)) for i in range(1, 9)]
    every = [1 << 20, smallest // 2, smallest - 1024, smallest] + rest
    return every[::max(1, len(every) // count)]


def check_builtins(program, networks, sizes, count, limit):
    missed, worst, cases = 0, (0.0, ""), 0
    for network in networks:
        for pixels in sizes:
            size = f"{pixels}x{pixels}"
            smallest = smallest_budget(program, network, size)
            if smallest is None:
                print(f"{network} {size}: takes no image of this size")
                continue
            for budget in budgets(smallest, count):
                arguments = [program, "plan", network, "--size", size, "--memory", str(budget)]
                code, seconds, clock, _, _ = measure(arguments)
                what = (f"{network} {size} --memory {budget}: exit {code}, {seconds:.2f} s "
                        f"({clock:.2f} s by the clock)")
                cases += 1
                worst = max(worst, (seconds, what))
                wanted = 4 if budget < smallest else 0
                if code != wanted or seconds > limit:
                    missed += 1
                    print(f"MISSED {what}", flush=True)
    print(f"built-in networks: {cases} cases, {missed} missed, longest {worst[1]}")
    return missed


def check_large(program, folder, share, limit):
    missed = 0
    shapes = [("chain", write_chain, 10000), ("concat", write_concat, 10000), ("dense", write_dense, 1000),
              ("outputs", write_outputs, 2000)]
    for name, write, n in shapes:
        path = os.path.join(folder, f"{name}.onnx")
        write(path, n // share)
        loading = measure([program, "plan", path, "--size", "64x64", "--untiled", "--no-groups"])
        for options in ([], ["--memory", "64MiB"], ["--memory", "1GiB"]):
            code, seconds, clock, peak, text = measure([program, "plan", path, "--size", "64x64", *options])
            more = max(0, peak - loading[3])
            fits = code == 0 or (code == 4 and options)
            good = fits and seconds - loading[1] <= limit and more <= LARGE_BYTES
            missed += not good
            print(f"{'' if good else 'MISSED '}{name} of {n // share} {' '.join(options)}: exit {code}, "
                  f"{seconds:.2f} s ({clock:.2f} s by the clock), of them loading {loading[1]:.2f}, "
                  f"{more / 2**20:.1f} MiB more "
                  f"{text.strip()[-80:] if not fits else ''}", flush=True)
    return missed


def stop_at(command, share, alone):
    """Sends SIGTERM at this share of the seconds that the command takes when it is left alone. A command that has
    ended by then was faster than when it was measured: it is begun again, with the time that it took now.
    Returns the exit code, the seconds from the signal to the end, and the moment."""
    while True:
        moment = max(0.02, share * alone)
        begun = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            child.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGTERM)
            begun = time.monotonic()
            return child.wait(), time.monotonic() - begun, moment
        alone = time.monotonic() - begun
        if child.returncode != 0 or moment <= 0.02:
            return child.returncode, 0.0, moment


def check_stop(program, folder, moments, limit):
    """Ends a command at several moments, shares of the time that it takes when it is left alone: at least 20 ms
    after its begin, as nobody listens before main, and long before its end, so that it cannot be done."""
    chain, dense = os.path.join(folder, "chain.onnx"), os.path.join(folder, "dense.onnx")
    placed = os.path.join(folder, "placed.onnx")  # one of the papers' strategies takes the cube of its nodes
    write_chain(placed, 2000)
    commands = [
        ["plan", chain, "--size", "64x64"],
        ["plan", "inception_v3", "--size", "2048x2048", "--memory", "1MiB"],
        ["plan", dense, "--size", "64x64", "--memory", "64MiB"],
        ["analyze", dense, "--size", "64x64"],
        ["advise", "resnet152", "--size", "2048x2048"],
        ["curve", "resnet152", "--size", "4096x4096", "--pareto"],
        ["memory", placed, "--size", "64x64"],
        ["curve", "resnet50", "--size", "1024x1024", "--plot", os.path.join(folder, "curve.svg")],
        ["export", "vgg16", "-o", os.path.join(folder, "vgg16.onnx")],
    ]
    missed = stopped = 0
    for command in commands:
        alone = measure([program, *command])[2]
        if alone < 2:  # where the share's moment hangs on it
            alone = min(alone, measure([program, *command])[2])
        for share in moments if alone > 0.05 else []:
            code, seconds, moment = stop_at([program, *command], share, alone)
            stopped += 1
            if code != 5 or seconds > limit:
                missed += 1
                print(f"MISSED {' '.join(command)}: SIGTERM after {moment:.3f} of {alone:.2f} s, "
                      f"exit {code} {seconds:.2f} s later", flush=True)
    print(f"signals: {stopped} commands stopped, {missed} missed")
    return missed + (stopped == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="what counts as a second")
    parser.add_argument("program")
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    listed = subprocess.run([args.program, "models", "--json"], capture_output=True, text=True, check=True).stdout
    every = [model["name"] for model in json.loads(listed)["models"]]
    networks = args.networks or (["mobilenet_v2", "inception_v3"] if args.short else every)
    with tempfile.TemporaryDirectory() as folder:
        missed = check_builtins(args.program, networks, SIZES[:1] if args.short else SIZES,
                                3 if args.short else 12, PLAN_SECONDS * args.seconds)
        missed += check_large(args.program, folder, 10 if args.short else 1, LARGE_SECONDS * args.seconds)
        missed += check_stop(args.program, folder, MOMENTS[1:3] if args.short else MOMENTS,
                             STOP_SECONDS * args.seconds)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
