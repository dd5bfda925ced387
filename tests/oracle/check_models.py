"""Whole networks through rfexec and ONNX Runtime: untiled, tiled and within budgets.

    check_models.py build/rfexec MODEL.onnx [MODEL.onnx ...] --sizes 224x224,513x769
        [--tiles RxC] [--bytes] [--conv CHOICE] [--batch N]

Each model runs at each size on the same random picture; every output must agree within 1e-4 of its
largest magnitude. With --tiles the tiled run must print the same hashes as the untiled one. With
--batch N it is N pictures in one array.
"""

import argparse
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import rfexec_cli


def reference(model_path, image):
    """All outputs of ONNX Runtime; static sizes in the file are made symbolic first."""
    model = onnx.load(model_path)
    names = {value.name for value in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in names]
    for value in inputs:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if axis >= 2 or (axis == 0 and dim.dim_value == 1):
                dim.dim_param = f"size{axis}"
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, {session.get_inputs()[0].name: image})))


def channels_of(path):
    """Channels of a model's first input, which are never symbolic."""
    model = onnx.load(path, load_external_data=False)
    constants = {tensor.name for tensor in model.graph.initializer}
    value = next(value for value in model.graph.input if value.name not in constants)
    return value.type.tensor_type.shape.dim[1].dim_value


def picture(channels, height, width, as_bytes, number=0):
    """A smooth random picture: normalised values, or 0..255 for networks that take bytes."""
    rng = np.random.default_rng(height * 100003 + width + 7919 * number)
    coarse = rng.normal(size=(channels, height // 16 + 2, width // 16 + 2))
    smooth = np.repeat(np.repeat(coarse, 16, axis=1), 16, axis=2)[:, :height, :width]
    image = (smooth + 0.3 * rng.normal(size=smooth.shape)).astype(np.float32)[None]
    return np.clip(image * 60 + 120, 0, 255).round().astype(np.float32) if as_bytes else image


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sizes", default="224x224")
    parser.add_argument("--tiles", help="also run tiled and compare hashes")
    parser.add_argument("--conv", default="direct", help="what computes convolutions (rfexec run)")
    parser.add_argument("--bytes", action="store_true", help="values 0..255 as input")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=1)
    args = parser.parse_args()
    passed = failed = 0
    for model in args.models:
        for size in args.sizes.split(","):
            height, width = (int(part) for part in size.split("x"))
            image = np.concatenate([picture(channels_of(model), height, width, args.bytes, n)
                                    for n in range(args.batch)])
            with tempfile.TemporaryDirectory() as folder:
                report, ours = rfexec_cli.run(args.program, model, image, folder,
                                            ["--untiled", "--conv", args.conv])
                theirs = reference(model, image)
                worst = max(rfexec_cli.worst_error(ours[name], theirs[name]) for name in theirs)
                good = worst <= args.tolerance
                note = ""
                if args.tiles:
                    tiled, _ = rfexec_cli.run(args.program, model, image, folder,
                                              ["--tiles", args.tiles, "--conv", args.conv])
                    same = [a["hash"] == b["hash"]
                            for a, b in zip(report["outputs"], tiled["outputs"])]
                    note = f", tiles {args.tiles} " + ("identical" if all(same) else "DIFFERENT")
                    good = good and all(same)
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok' if good else 'FAILED'}: {model} {size}: {len(theirs)} outputs, largest "
                  f"error {worst:.2e} of the largest magnitude{note}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
