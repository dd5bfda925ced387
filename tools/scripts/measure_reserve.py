"""Measures what a run of rfexec needs beside what its plan accounts for.

    measure_reserve.py build/rfexec

Peak resident memory (the kernel's VmHWM) less arena, weights, scratch and image, for three networks as
built-ins and as exported ONNX files, in tiles and as a stream with weights by stage, with convolutions by
own kernels and by OpenBLAS under four core types, and 1, 2, 4 and 8 threads: code, libraries, stacks,
OpenBLAS's buffers, tables.
docs/memory.md says what rfx_plan_reserve_bytes makes of it.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile

NETWORKS = [("mobilenet_v2", "1024x1024"), ("resnet50", "512x512"), ("vgg16", "224x224"),
            ("efficientnet_b0", "224x224"), ("real_esrgan", "24x24")]
WAYS = [["--tiles", "3x3"], ["--bands", "16", "--weights-by-stage"]]
CORES = [None, "Haswell", "Zen", "SkylakeX", "Prescott"]  # None: own kernels


def overhead(program, network, size, core, threads, way):
    """(measured, reserved) in MiB of one run; None: the processor cannot run this core type."""
    command = [program, "run", network, f"synthetic:{size}", "--json", "--threads", str(threads),
               *way]
    command += ["--conv", "openblas" if core else "direct"]
    environment = dict(os.environ, **({"OPENBLAS_CORETYPE": core} if core else {}))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode == -signal.SIGILL:
        return None  # this processor has no such instructions
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    reserve = report["plan"]["breakdown"]["reserve"]
    planned = report["plan"]["peak_bytes"] - reserve
    return (report["measured"]["peak_rss_bytes"] - planned) / 2**20, reserve / 2**20


def main():
    program = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
    worst = {}
    with tempfile.TemporaryDirectory() as folder:
        models = []
        for network, size in NETWORKS:
            path = os.path.join(folder, network + ".onnx")
            subprocess.run([program, "export", network, "-o", path], check=True, capture_output=True)
            models += [(network, size), (path, size)]
        for (model, size), core, threads, way in itertools.product(models, CORES, [1, 2, 4, 8], WAYS):
            found = overhead(program, model, size, core, threads, way)
            if found is None:
                continue
            measured, reserve = found
            worst[threads] = max(worst.get(threads, (0, 0)), (measured, reserve))
            print(f"{os.path.basename(model):18} {core or 'direct':9} {' '.join(way):28} {threads} threads: "
                  f"{measured:5.1f} MiB of {reserve:.1f}")
    for threads, (measured, reserve) in worst.items():
        print(f"largest with {threads} threads: {measured:.1f} MiB, reserved {reserve:.1f} MiB")
    return 0 if all(measured <= reserve for measured, reserve in worst.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
