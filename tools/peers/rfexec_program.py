"""rfexec as a program that is measured: bench, fingerprints, plans, exports."""

import json
import pathlib
import re
import subprocess

# Options that the bits of a result depend on; all others choose a plan, and no plan changes bits.
BITS = {"--conv": 1, "--seed": 1, "--no-fuse": 0, "--no-fuse-add": 0}


class Refused(Exception):
    """A program or a model says no; the text says why."""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def first_line(done, arguments):
    """What rfexec gives as its reason, files without their folders."""
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    text = lines[0].removeprefix("rfexec: ")
    for argument in arguments:
        if "/" in argument:
            text = text.replace(argument, pathlib.PurePath(argument).name)
    return text


def run(command, timeout, **more):
    """The finished process; Refused when it takes too long or cannot be started."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=timeout, **more)
    except subprocess.TimeoutExpired:
        raise Refused(f"takes longer than {timeout} s") from None
    except OSError as error:
        raise Refused(str(error)) from None


def bits_options(options):
    """Those of the options that the untiled run of the same arithmetic has."""
    kept, i = [], 0
    while i < len(options):
        name, _, joined = options[i].partition("=")
        count = 1 + (BITS.get(name, 0) if not joined else 0)
        if name in BITS:
            kept += options[i:i + count]
        i += count
    return kept


class Rfexec:
    def __init__(self, program, threads, timeout):
        self.program, self.threads, self.timeout = program, threads, timeout

    def json(self, arguments):
        """(exit code, parsed stdout); Refused on any exit but 0 and 4 (budget impossible)."""
        done = run([self.program] + arguments, self.timeout)
        if done.returncode not in (0, 4):
            raise Refused(first_line(done, arguments))
        try:
            return done.returncode, json.loads(done.stdout)
        except json.JSONDecodeError:
            raise Refused(f"no JSON from {' '.join(arguments)}") from None

    def builtins(self):
        return [model["name"] for model in self.json(["models", "--json"])[1]["models"]]

    def bench_command(self, model, image, options):
        return ["bench", model, str(image), "--threads", str(self.threads), "--runs", "1",
                "--json"] + options

    def bench(self, model, image, options):
        """One warm-up run and one timed run of a picture file in a process."""
        code, result = self.json(self.bench_command(model, image, options))
        if code == 4:
            smallest = result.get("smallest_bytes", 0)
            raise Refused(f"impossible, smallest {smallest / 2**20:.1f} MiB")
        return {"seconds": result["measured"]["seconds"],
                "peak_rss_bytes": result["measured"]["peak_rss_bytes"],
                "macs_ratio": result["plan"]["macs_ratio"], "plan": result["plan"]["text"]}

    def fingerprints(self, model, size, options):
        """Of all outputs of one run."""
        code, result = self.json(["run", model, f"synthetic:{size}", "--threads",
                                  str(self.threads), "--json"] + options)
        if code == 4:
            raise Refused("impossible")
        return [output["hash"] for output in result["outputs"]]

    def write_outputs(self, model, image, folder):
        """The outputs for a picture in a .npy file, as .npy files in the folder."""
        self.json(["run", model, str(image), "--threads", str(self.threads), "--untiled", "--json",
                   "-o", str(folder / "out.npy")])

    def smallest_bytes(self, model, size, options):
        """The smallest possible budget, which a budget that is too small makes rfexec name; of a
        model that takes more to load than to run, about what loading takes."""
        for mib in (1 << shift for shift in range(16)):
            arguments = ["plan", model, "--size", size, "--threads", str(self.threads),
                         "--memory", f"{mib}MiB", "--json"] + options
            done = run([self.program] + arguments, self.timeout)
            if done.returncode == 0:
                return mib << 20
            if done.returncode != 4:
                raise Refused(first_line(done, arguments))
            if done.stdout:  # else the model could not be loaded
                return json.loads(done.stdout)["smallest_bytes"]
        raise Refused("names no smallest budget")

    def export(self, builtin, size, path):
        """None when written, else the name of the adaptive pool that ONNX has not at this size."""
        arguments = [self.program, "export", builtin, "-o", str(path)]
        done = run(arguments + (["--size", size] if size else []), self.timeout)
        if done.returncode == 0:
            return None
        pool = re.search(r"AdaptiveAveragePool '([^']+)'", done.stderr)
        if not pool:
            raise Refused(last_line(done.stderr).removeprefix("rfexec: "))
        return pool[1]
