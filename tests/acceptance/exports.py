#!/usr/bin/env python3
"""Networks of torchvision and timm that mix convolutions with attention, and SCUNet: rfexec beside
ONNX Runtime.

    exports.py [--exporter ts|dynamo|both] [--folder DIR] PROGRAM [NAME ...]

For each network and exporter of tools/scripts/export_hybrids.py:
1. the file is exported, unless it is in DIR already;
2. every output agrees with ONNX Runtime within 1e-4 of its largest magnitude;
3. `rfexec verify` finds the same bits in the whole-image run and in the plan of the least memory that
   the planner names, or of the least of 8 MiB and its doubles in which the file can be loaded;
4. `rfexec check` says how many layers keep their maps whole: of Swin and SCUNet none may.

Needs torch, torchvision, timm, onnx, onnxscript and onnxruntime (tests/acceptance/exports.txt), several
GB: it is run by hand. Where torch is missing it says so, and nothing is compared.
The exit code is 1 when anything was missed; every miss is printed.
"""

import argparse
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-4
NEEDED = ("torch", "torchvision", "timm", "onnx", "onnxscript", "onnxruntime")
STREAMS = ("swin_t", "scunet")  # no layer of them may keep a map whole


def missing():
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def export(folder, name, exporter):
    """The file's path; None, with words, where torch's exporter refuses the network."""
    path = folder / f"{name}_{exporter}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, str(TOP / "tools/scripts/export_hybrids.py"), str(folder), name,
                        "--exporter", exporter], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    if not path.exists():
        print(f"skipped: {name} {exporter}: torch does not export it", flush=True)
        return None
    return path


def image_of(path):
    import numpy
    import onnx

    dims = onnx.load(path, load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    shape = [dim.dim_value for dim in dims]
    rng = numpy.random.default_rng(sum(shape))
    return rng.standard_normal(shape).astype(numpy.float32)


def expected(path, image):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, {session.get_inputs()[0].name: image})))


def say(good, path, what):
    print(f"{'ok' if good else 'FAILED'}: {path.stem}: {what}", flush=True)
    return good


def smallest(program, path, array):
    """Options for the least budget that the planner finds a plan for, from its own words; and those.
    Loading takes something, too: 8 MiB and its doubles are tried until the planner answers."""
    words = ""
    for mib in (8 << k for k in range(10)):
        budget = ["--memory", f"{mib}MiB"]
        done = subprocess.run([program, "plan", str(path), str(array), *budget],
                              capture_output=True, text=True, check=False)
        words = done.stderr.strip()
        found = re.findall(r"--memory \d+(?: --threads \d+)?", words)
        if done.returncode == 0 or found:
            return found[-1].split() if found else budget, words
    return None, words


def verify(program, path, array, options):
    done = subprocess.run([program, "verify", str(path), str(array), *options], capture_output=True,
                          text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "IDENTICAL" in line or "DIFFER" in line]
    words = " ".join(lines[-1].split()) if lines else done.stderr.strip()[:300]
    return done.returncode == 0, words


def check(program, path):
    done = subprocess.run([program, "check", str(path), "--json"], capture_output=True, text=True,
                          check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def compare(program, path, folder):
    import rfexec_cli

    image = image_of(path)
    try:
        _, ours = rfexec_cli.run(program, path, image, folder)
    except (rfexec_cli.Refused, RuntimeError) as error:
        return say(False, path, str(error)[:400])
    theirs = expected(path, image)
    worst = max(rfexec_cli.worst_error(ours[name], theirs[name]) for name in theirs)
    good = say(worst <= TOLERANCE, path, f"largest error {worst:.2e} of the largest magnitude")
    array = pathlib.Path(folder) / "input.npy"
    budget, words = smallest(program, path, array)
    if budget is None:
        return say(False, path, f"no smallest budget in: {words[:300]}")
    same, words = verify(program, path, array, budget)
    good = say(same, path, f"{' '.join(budget)}: {words}") and good
    report = check(program, path)
    count = len(report["whole"]) if report else -1
    must = path.stem.rsplit("_", 1)[0] in STREAMS
    return say(not must or count == 0, path, f"{count} layers keep their maps whole") and good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exporter", choices=("ts", "dynamo", "both"), default="both")
    parser.add_argument("--folder", help="where the files are, and stay")
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    lacks = missing()
    if lacks:
        print(f"NOT compared: {', '.join(lacks)} not installed (tests/acceptance/exports.txt)")
        return 77
    sys.path[:0] = [str(TOP / "tests/oracle"), str(TOP / "tools/scripts")]
    import export_hybrids

    missed = 0
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(args.folder or work)
        folder.mkdir(parents=True, exist_ok=True)
        for name in args.names or export_hybrids.NETWORKS:
            for exporter in ("ts", "dynamo") if args.exporter == "both" else (args.exporter,):
                path = export(folder, name, exporter)
                missed += path is not None and not compare(args.program, path, work)
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
