#!/usr/bin/env python3
"""Writes the golden fingerprints of all built-in networks: what `rfexec run` on whole maps gives for
seeded weights and synthetic pictures, which every processor with own kernels must reproduce.

    make_fingerprints.py RFEXEC > data/fingerprints.csv

One row per network, size, arithmetic of convolutions, and output. To be run on a processor whose
kernels have fused multiply-add, when the arithmetic has changed on purpose.
"""

import json
import subprocess
import sys

SIZES = ["97x65", "160x224"]
OTHER_SIZES = {  # networks whose last layers need more, or whose cost is high
    "inception_v3": ["107x131", "160x224"],
    "inception_v4": ["107x131", "160x224"],
    "nafnet": ["33x47", "61x46"],
    "real_esrgan": ["17x13", "24x32"],
    "real_esrgan_compact": ["41x33", "64x96"],
    "srgan": ["41x33", "64x96"],
    "swinir_light": ["64x48", "104x72"],
    "vae_decoder": ["5x7", "9x12"],
    "vgg16": ["65x97", "160x224"],
}
CONVS = ["direct"]


def run(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"rfexec {' '.join(arguments)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    print("model,size,conv,output,shape,fingerprint")
    for model in run(program, "models")["models"]:
        name = model["name"]
        for size in OTHER_SIZES.get(name, SIZES):
            for conv in CONVS:
                result = run(program, "run", name, f"synthetic:{size}", "--untiled", "--conv", conv)
                for output in result["outputs"]:
                    shape = "x".join(str(d) for d in output["shape"])
                    print(f"{name},{size},{conv},{output['name']},{shape},{output['hash']}")


if __name__ == "__main__":
    main()
