"""Forms of programs written for ONNX Runtime, run with either import; as a program, prints a table:

    python runtime_forms.py          # needs onnxruntime and rfexec

Each function is a piece of a program in which only `ort` is another module.
"""

import sys
from pathlib import Path

import numpy as np

MODEL = str(Path(__file__).resolve().parents[2] / "data" / "defect_net.onnx")
IMAGE = np.random.default_rng(5).standard_normal((1, 3, 64, 96), dtype=np.float32)


def path_and_names(ort):
    session = ort.InferenceSession(MODEL)
    return session.run([session.get_outputs()[0].name], {session.get_inputs()[0].name: IMAGE})


def all_outputs(ort):
    return ort.InferenceSession(MODEL).run(None, {"image": IMAGE})


def no_names(ort):
    return ort.InferenceSession(MODEL).run([], {"image": IMAGE})


def bytes_of_a_model(ort):
    return ort.InferenceSession(Path(MODEL).read_bytes()).run(None, {"image": IMAGE})


def providers(ort):
    session = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    return [session.get_providers(), session.run(None, {"image": IMAGE})[0]]


def provider_with_options(ort):
    session = ort.InferenceSession(MODEL, providers=[("CPUExecutionProvider", {})])
    return session.run(None, {"image": IMAGE})


def all_available_providers(ort):
    wanted = [p for p in ort.get_available_providers() if p == "CPUExecutionProvider"]
    return [wanted, ort.get_device()[:3], ort.InferenceSession(MODEL, providers=wanted).run(None, {"image": IMAGE})[0]]


def session_options(ort):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": IMAGE})


def options_by_name(ort):
    session = ort.InferenceSession(path_or_bytes=MODEL, sess_options=ort.SessionOptions())
    return session.run(output_names=None, input_feed={"image": IMAGE})


def run_options(ort):
    return ort.InferenceSession(MODEL).run(None, {"image": IMAGE}, ort.RunOptions())


def logger(ort):
    ort.set_default_logger_severity(3)
    return ort.InferenceSession(MODEL).run(None, {"image": IMAGE})


def fallback(ort):
    session = ort.InferenceSession(MODEL)
    session.disable_fallback()
    session.set_providers(["CPUExecutionProvider"])
    return session.run(None, {"image": IMAGE})


def types_and_ranks(ort):
    session = ort.InferenceSession(MODEL)
    both = session.get_inputs() + session.get_outputs()
    return [[arg.name, arg.type, len(arg.shape), arg.shape[:2]] for arg in both]


def metadata(ort):
    meta = ort.InferenceSession(MODEL).get_modelmeta()
    return [meta.producer_name, meta.graph_name, meta.version, meta.custom_metadata_map]


def two_sizes(ort):
    session = ort.InferenceSession(MODEL)
    return [session.run(None, {"image": x})[0] for x in (IMAGE, IMAGE[:, :, :32, :64], IMAGE)]


def turned_picture(ort):
    """A picture with channels last that transpose has turned: not contiguous."""
    picture = np.ascontiguousarray(IMAGE[0].transpose(1, 2, 0))
    return ort.InferenceSession(MODEL).run(None, {"image": picture.transpose(2, 0, 1)[None]})


def zip_of_names(ort):
    session = ort.InferenceSession(MODEL)
    names = [output.name for output in session.get_outputs()]
    return list(dict(zip(names, session.run(names, {"image": IMAGE}))).values())


def refused_type(ort):
    return _refusal(lambda: ort.InferenceSession(MODEL).run(None, {"image": IMAGE.astype(float)}))


def refused_rank(ort):
    return _refusal(lambda: ort.InferenceSession(MODEL).run(None, {"image": IMAGE[0]}))


def refused_name(ort):
    return _refusal(lambda: ort.InferenceSession(MODEL).run(None, {"other": IMAGE}))


def refused_output(ort):
    return _refusal(lambda: ort.InferenceSession(MODEL).run(["other"], {"image": IMAGE}))


def missing_file(ort):
    return _refusal(lambda: ort.InferenceSession("no_such_file.onnx"))


def _refusal(function):
    try:
        function()
    except Exception:  # of either module's classes
        return ["refused"]
    return ["taken"]


FORMS = [f for name, f in list(globals().items()) if callable(f) and name[0] != "_" and name != "Path"]


def same(a, b):
    """Equal, floats within 1e-4 of the largest."""
    if isinstance(a, np.ndarray):
        fits = isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype
        return fits and float(np.abs(a - b).max()) <= 1e-4 * float(np.abs(a).max())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def outcome(form, module):
    try:
        return form(module)
    except Exception as error:  # what a program would end with
        return f"{type(error).__name__}: {error}"


def words(value):
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list):
        return ", ".join(map(words, value))
    return str(value)[:60]


def main():
    import onnxruntime
    import rfexec

    onnxruntime.set_default_logger_severity(4)
    differ = 0
    print("| form | ONNX Runtime | rfexec | |\n|---|---|---|---|")
    for form in FORMS:
        theirs, ours = outcome(form, onnxruntime), outcome(form, rfexec)
        fits = same(theirs, ours)
        differ += not fits
        mark = "same" if fits else "OTHER"
        print(f"| {form.__name__} | {words(theirs)} | {words(ours)} | {mark} |")
    print(f"{len(FORMS) - differ} passed, {differ} failed")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
