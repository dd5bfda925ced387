"""rfexec against ONNX Runtime: the same ONNX file, sizes and threads, one process each, in turn.

    bench_peers.py build/rfexec MODEL.onnx [MODEL.onnx ...] --sizes 1024x1024,2048x2048
        [--budgets 64MiB,128MiB] [--threads 2] [--runs 5] [--markdown FILE]

Each round runs ONNX Runtime, rfexec untiled and rfexec in every budget one after the other; a row
gives the median of the per-round ratios rfexec / ONNX Runtime, so that a machine whose speed drifts
changes little. Seconds are of the run alone (model loaded, image in memory or computed before
ONNX Runtime's clock starts; rfexec's clock includes reading the image). Peak RSS is the kernel's
figure for the whole process. "identical" compares the outputs' fingerprints with the untiled run's.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time


def run_onnxruntime(model_path, size, threads):
    """Child process: one warm-up, one timed run; prints JSON."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model_path, options,
                                           providers=["CPUExecutionProvider"])
    height, width = size
    image = np.random.default_rng(1).normal(size=(1, 3, height, width)).astype(np.float32)
    name = session.get_inputs()[0].name
    session.run(None, {name: image})
    start = time.perf_counter()
    session.run(None, {name: image})
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_rss_bytes": peak}))


def time_onnxruntime(args, model, size):
    command = [sys.executable, __file__, "--child", str(model), f"{size[0]}x{size[1]}",
               str(args.threads)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def time_rfexec(args, model, size, options):
    """None when the budget is impossible (exit 4)."""
    command = [args.program, "bench", str(model), "--size", f"{size[0]}x{size[1]}", "--threads",
               str(args.threads), "--runs", "1", "--json"] + options
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 4:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def fingerprints(args, model, size, options):
    """Of all outputs of one run; None when the budget is impossible."""
    command = [args.program, "run", str(model), f"synthetic:{size[0]}x{size[1]}", "--threads",
               str(args.threads), "--json"] + options
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    return [output["hash"] for output in json.loads(done.stdout)["outputs"]]


def parse_size(text):
    height, width = text.split("x")
    return int(height), int(width)


def mib(value):
    return f"{value / 2**20:.0f} MiB"


def row(model, size, name, ours, theirs, same):
    """One table row from the rounds of one configuration."""
    if not ours:
        return [model, size, name, "-", "-", "-", "-", "impossible", "-"]
    ratios = [a["measured"]["seconds"] / b["seconds"] for a, b in zip(ours, theirs)]
    seconds = statistics.median(a["measured"]["seconds"] for a in ours)
    peak = max(a["measured"]["peak_rss_bytes"] for a in ours)
    peer = max(b["peak_rss_bytes"] for b in theirs)
    return [model, size, name, f"{seconds:.2f} s", f"{statistics.median(ratios):.2f}",
            mib(peak), f"{peak / peer:.2f}", f"{ours[0]['plan']['macs_ratio']:.3f}",
            "yes" if same else "NO"]


def measure(args, model, size):
    """Rows of one model and size: ONNX Runtime first, then rfexec in each configuration."""
    configurations = [("untiled", ["--untiled"])]
    configurations += [(budget, ["--memory", budget]) for budget in args.budgets]
    theirs, ours = [], {name: [] for name, _ in configurations}
    possible = list(configurations)
    for _ in range(args.runs):
        theirs.append(time_onnxruntime(args, model, size))
        for name, options in list(possible):
            result = time_rfexec(args, model, size, options)
            if result is None:
                possible.remove((name, options))
            else:
                ours[name].append(result)
    text = f"{size[0]}x{size[1]}"
    label = pathlib.Path(model).stem
    peer = [label, text, "ONNX Runtime",
            f"{statistics.median(b['seconds'] for b in theirs):.2f} s", "1",
            mib(max(b["peak_rss_bytes"] for b in theirs)), "1", "1", "-"]
    wanted = fingerprints(args, model, size, ["--untiled"])
    return [peer] + [row(label, text, "rfexec " + name, ours[name], theirs,
                         wanted is not None and fingerprints(args, model, size, options) == wanted)
                     for name, options in configurations]


HEADER = ["network", "image", "run", "time", "time ratio", "peak RSS", "memory ratio", "MAC ratio",
          "identical"]


def table(rows):
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows])


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--child":
        return run_onnxruntime(sys.argv[2], parse_size(sys.argv[3]), int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sizes", default="1024x1024")
    parser.add_argument("--budgets", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", help="write the table to this file as well")
    args = parser.parse_args()
    args.budgets = [b for b in args.budgets.split(",") if b]
    rows = []
    for model in args.models:
        for size in args.sizes.split(","):
            rows += measure(args, model, parse_size(size))
            print(table(rows[-2 - len(args.budgets):]), flush=True)
    if args.markdown:
        pathlib.Path(args.markdown).write_text(table(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
