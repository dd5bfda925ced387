"""What a run may be about: network, picture and arithmetic, and where its outputs go."""

import glob
import math
import os

import pictures

DATA = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3, "data"))
MOST_PARAMETERS = 30_000_000  # the weights of larger ones take seconds to make, in every run
MACS = 1e9  # of a run, about
SIDES = (24, 200)
CONVOLUTIONS = ["direct"] * 4 + ["winograd", "openblas"]
FLAGS = [[]] * 4 + [["--weights-by-stage"], ["--row-by-row"], ["--no-groups"], ["--no-inplace"]]
SINKS = [[], ["npy"], ["tif"], ["tif", "--bits", "16", "--range", "-1,1"], ["png"],
         ["png", "--bits", "16", "--range", "-1,1"]]


class Subject:
    """A network and a picture, whose fingerprints depend on nothing else."""

    def __init__(self, model, picture, conv):
        self.model, self.picture, self.conv = model, picture, conv

    def arguments(self):
        return ["run", self.model, self.picture, "--conv", self.conv, "--json"]


def networks(listed):
    """(name, typical side of an image, how often it is drawn) of the built-in networks that are not huge, and of the
    8-bit files of data/."""
    chosen = [(path, 600, 1) for path in sorted(glob.glob(os.path.join(DATA, "quantised_*.onnx")))]
    for model in listed:
        side = 224 * math.sqrt(MACS / model["macs_224"])
        if model["params"] <= MOST_PARAMETERS:
            chosen.append((model["name"], side, 1 / (1 + model["params"] / 5e6)))
    return chosen


class Pool:
    """Draws subjects; a network may come as an ONNX file that was exported before."""

    def __init__(self, program, folder, jpeg_maker):
        self.program, self.folder, self.jpeg_maker = program, folder, jpeg_maker
        self.networks = networks(program.document(["models", "--json"])["models"])
        self.kinds = [kind for kind in pictures.KINDS if kind != "jpg" or jpeg_maker]

    def model(self, rng, name):
        if name.endswith(".onnx") or rng.random() < 0.7:
            return name
        path = os.path.join(self.folder, f"{name}.onnx")
        if not os.path.exists(path):
            self.program.must(["export", name, "-o", path])
        return path

    def picture(self, rng, number, rows, columns):
        kind = rng.choice(self.kinds + ["synthetic"] * 2)
        if kind == "synthetic":
            return f"synthetic:{rows}x{columns}:{number}"
        path = os.path.join(self.folder, f"{number}.{kind}")
        pictures.write(path, kind, rng, rows, columns, self.jpeg_maker)
        return path

    def draw(self, rng, number):
        name, side, _ = rng.choices(self.networks, [weight for _, _, weight in self.networks])[0]
        rows, columns = (max(SIDES[0], min(SIDES[1], round(side * rng.uniform(0.5, 1.5)))) for _ in range(2))
        return Subject(self.model(rng, name), self.picture(rng, number, rows, columns), rng.choice(CONVOLUTIONS))
