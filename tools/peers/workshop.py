"""The models as each program reads them, kept in a work folder: conversions are made once."""

import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile

from peers import convert_litert
from peers.rfexec_program import Refused, last_line, run

HERE = pathlib.Path(__file__).resolve().parent
# Two sizes for which pnnx follows the shapes, so that a network of any size stays one.
PNNX_SIZES = ((256, 256), (384, 384))
INT8 = ":int8"  # the end of built-in names of networks on bytes


def label(model):
    """How a table names a model: a file without its folder."""
    path = pathlib.Path(model)
    return path.stem if path.suffix == ".onnx" else model


def python(script, *arguments, timeout=None):
    """Stdout of one of the scripts beside this file; Refused with its last words."""
    done = run([sys.executable, str(HERE / script), *map(str, arguments)], timeout)
    if done.returncode < 0:
        raise Refused(f"killed by signal {-done.returncode}")
    if done.returncode != 0:
        raise Refused(last_line(done.stderr))
    return done.stdout


class Case:
    """A network at a size: `model` is what rfexec runs, `onnx` what the peers get."""

    def __init__(self, name, size, model, onnx, note=""):
        self.name, self.size, self.model, self.onnx, self.note = name, size, model, onnx, note
        self.int8 = name.endswith(INT8)


class Workshop:
    def __init__(self, folder, rfexec, timeout):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rfexec, self.timeout = rfexec, timeout
        self.hashes = {}

    def hash(self, path):
        """Of a file's content and of the converters' versions: the key of its conversions."""
        key = str(path), os.stat(path).st_mtime_ns
        if key not in self.hashes:
            digest = hashlib.sha256(self.converters().encode())
            with open(path, "rb") as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    digest.update(block)
            self.hashes[key] = digest.hexdigest()[:16]
        return self.hashes[key]

    def converters(self):
        if not hasattr(self, "_converters"):
            self._converters = python("model_files.py", "converters").strip()
        return self._converters

    def converter_versions(self):
        return json.loads(self.converters())

    def image(self, size):
        path = self.folder / f"image-{size}.npy"
        if not path.exists():
            self.make(path, lambda part: python("model_files.py", "image", part, size))
        return path

    @staticmethod
    def make(path, write):
        """`write` makes a file that appears under its name only when it is complete."""
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = pathlib.Path(folder) / path.name
            write(part)
            if not part.exists():
                raise Refused(f"the converter wrote no {path.name}")
            part.replace(path)
        return path

    def case(self, model, size):
        """A file as it is; a built-in network exported anew, as the exporter may have changed."""
        if pathlib.Path(model).is_file():
            return Case(label(model), size, str(model), pathlib.Path(model))
        stem = "".join(c if c.isalnum() or c in "_.-" else "_" for c in model)
        path = self.folder / f"{stem}-{size}.onnx"
        pool = self.rfexec.export(model, size, path)
        if pool is None:
            return Case(model, size, str(path), path)
        self.replace_pool(model, path, pool, size)
        return Case(model, size, model, path,
                    f"the peers' file has the adaptive pool '{pool}' as a product with a matrix of "
                    "averages, which ONNX cannot say at this size; rfexec runs the built-in")

    def replace_pool(self, model, path, pool, size):
        """The network with its pool as a product. It is read at twice its own size, where the
        exporter can say the pool, but must say it: at its own size there may be nothing to pool."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            source = pathlib.Path(folder) / "source.onnx"
            if self.rfexec.export(model, None, source) is not None:
                raise Refused("cannot be exported at its own size")
            own = python("model_files.py", "size", source).strip()
            if own == "any":
                raise Refused(f"its pool '{pool}' cannot be exported at this size")
            twice = "x".join(str(2 * int(side)) for side in own.split("x"))
            if self.rfexec.export(model, twice, source) is not None:
                raise Refused(f"its pool '{pool}' cannot be exported at {twice} either")
            self.make(path, lambda part: python("model_files.py", "pool", source, part, pool, size))

    def model_for(self, peer, case):
        """What child.py opens: converted where the peer does not read ONNX."""
        if peer == "litert":
            return self.litert(case)
        if case.int8 and peer in ("mnn", "ncnn"):
            raise Refused("its converter does not read QuantizeLinear and DequantizeLinear")
        if peer == "mnn":
            return self.mnn(case.onnx)
        if peer == "ncnn":
            return self.ncnn(case)
        return str(case.onnx)

    def litert(self, case):
        if not case.int8:
            raise Refused("takes part with networks of 8 bits only")
        if case.name not in convert_litert.NETWORKS:
            raise Refused("Keras has no such network to convert for it")
        script = pathlib.Path(convert_litert.__file__)
        path = self.folder / f"{case.onnx.stem}-{case.size}-{self.hash(script)}.tflite"
        if not path.exists():
            self.make(path, lambda part: python(script.name, case.name, case.size, part,
                                                timeout=self.timeout))
        return str(path)

    def mnn(self, onnx):
        path = self.folder / f"{onnx.stem}-{self.hash(onnx)}.mnn"
        if not path.exists():
            self.make(path, lambda part: python("model_files.py", "mnn", onnx, part,
                                                timeout=self.timeout))
        return str(path)

    def ncnn(self, case):
        """pnnx writes seven files beside its input, so it gets a link in a folder of its own."""
        fixed = python("model_files.py", "size", case.onnx).strip()
        key = self.hash(case.onnx)
        sizes = PNNX_SIZES if fixed == "any" else (tuple(map(int, fixed.split("x"))),)
        try:
            return self.pnnx(case.onnx, f"{case.onnx.stem}-{key}", sizes)
        except Refused:
            if fixed != "any":
                raise
            only = tuple(map(int, case.size.split("x")))
            return self.pnnx(case.onnx, f"{case.onnx.stem}-{key}-{case.size}", (only,))

    def pnnx(self, onnx, stem, sizes):
        base = self.folder / stem
        param, weights = base.with_name(stem + ".param"), base.with_name(stem + ".bin")
        if param.exists() and weights.exists():
            return str(base)
        shapes = [f"inputshape{'' if i == 0 else i + 1}=[1,3,{h},{w}]f32"
                  for i, (h, w) in enumerate(sizes)]
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            folder = pathlib.Path(folder)
            (folder / "m.onnx").symlink_to(onnx.resolve())
            done = run([pnnx_program(), "m.onnx", *shapes, "fp16=0"], self.timeout, cwd=folder)
            made = folder / "m.ncnn.param"
            if done.returncode != 0 or not made.exists():
                raise Refused(f"pnnx: exit code {done.returncode}, "
                              + last_line(done.stderr or done.stdout))
            unknown = unknown_layers(made.read_text(encoding="utf-8"))
            if unknown:
                raise Refused(f"pnnx leaves {', '.join(unknown)} without an ncnn layer")
            (folder / "m.ncnn.bin").replace(weights)
            made.replace(param)
        return str(base)


def unknown_layers(text):
    """Layer types of a .param file that are another program's names, such as "aten::cumsum"."""
    kinds = {line.split()[0] for line in text.splitlines()[2:] if line.split()}
    return sorted(kind for kind in kinds if "." in kind or "::" in kind)


def pnnx_program():
    """The program inside the package: importing the package would import PyTorch, which the
    conversion of ONNX files does not need."""
    spec = importlib.util.find_spec("pnnx")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = pathlib.Path(folder) / "pnnx"
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("pnnx")
    if not found:
        raise Refused("pnnx, which converts ONNX files for ncnn, is not installed")
    return found
