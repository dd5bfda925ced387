"""One measured run of one peer in a process of its own: load, warm-up run, timed run.

    child.py PEER MODEL IMAGE.npy THREADS OUTPUTS.npz
    child.py versions

MODEL is what the peer reads: an .onnx file, an .mnn file, NAME for NAME.param and NAME.bin (ncnn),
or a .tflite file (LiteRT). The last line of stdout is JSON: seconds of the timed run, and the peak
resident memory by the kernel (with the interpreter and the picture, some 40 MiB and 12 bytes a
pixel). The outputs are written after both are taken, so that the caller can see that every program
computed the same.
A clock stops when the outputs are in memory as float32, rows contiguous, whatever the program's own
layout is.
"""

import importlib
import importlib.metadata
import json
import resource
import sys
import time

import numpy as np

# Name -> (module, distribution). The converters are checked as well: without them no model.
DISTRIBUTIONS = {"onnxruntime": ("onnxruntime", "onnxruntime"), "openvino": ("openvino", "openvino"),
                 "mnn": ("MNN", "MNN"), "ncnn": ("ncnn", "ncnn"),
                 "litert": ("ai_edge_litert.interpreter", "ai-edge-litert")}


def prepare_onnxruntime(path, image, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: image}
    return lambda: session.run(None, feed)


def prepare_openvino(path, image, threads):
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({model.inputs[0].get_any_name(): list(image.shape)})
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1"})
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(image, shared_memory=True))

    def run():
        request.infer()
        return [tensor.data for tensor in request.output_tensors]
    return run


def prepare_mnn(path, image, threads):
    import MNN

    floats, plain = MNN.Halide_Type_Float, MNN.Tensor_DimensionType_Caffe
    network = MNN.Interpreter(path)
    # precision high: float32 storage and arithmetic
    session = network.createSession({"backend": "CPU", "precision": "high", "numThread": threads})
    entry = network.getSessionInput(session)
    network.resizeTensor(entry, image.shape)
    network.resizeSession(session)
    source = MNN.Tensor(image.shape, floats, image, plain)

    def run():
        entry.copyFrom(source)
        code = network.runSession(session)
        if code != 0:
            raise RuntimeError(f"MNN's runSession returns {code}")
        arrays = []
        for tensor in network.getSessionOutputAll(session).values():
            memory = np.empty(tensor.getShape(), np.float32)  # a Tensor borrows it, no more
            host = MNN.Tensor(tensor.getShape(), floats, memory, plain)
            tensor.copyToHostTensor(host)
            arrays.append(np.array(host.getNumpyData()))
        return arrays
    return run


def prepare_ncnn(path, image, threads):
    import ncnn

    network = ncnn.Net()
    network.opt.num_threads = threads
    for name in dir(network.opt):  # float32 throughout; Winograd stays as it is by default
        if name.startswith(("use_fp16_", "use_bf16_")) or name == "use_int8_inference":
            setattr(network.opt, name, False)
    if network.load_param(path + ".param") != 0 or network.load_model(path + ".bin") != 0:
        raise RuntimeError("ncnn cannot load the converted model")
    entries = network.input_names()
    if len(entries) != 1:
        raise RuntimeError(f"the converted model has {len(entries)} inputs")
    source = ncnn.Mat(image[0])

    def run():
        extractor = network.create_extractor()
        extractor.input(entries[0], source)
        arrays = []
        for name in network.output_names():
            code, mat = extractor.extract(name)
            if code != 0:
                raise RuntimeError(f"ncnn's extract of {name} returns {code}")
            arrays.append(np.array(mat))
        return arrays
    return run


def prepare_litert(path, image, threads):
    """With LiteRT's own choice of kernels, which is the delegate XNNPACK."""
    from ai_edge_litert.interpreter import Interpreter

    network = Interpreter(path, num_threads=threads)
    network.allocate_tensors()
    entry = network.get_input_details()[0]["index"]
    results = [output["index"] for output in network.get_output_details()]
    network.tensor(entry)()[...] = image.transpose(0, 2, 3, 1)  # no run overwrites an input

    def run():
        network.invoke()
        return [network.get_tensor(index) for index in results]
    return run


PREPARE = {"onnxruntime": prepare_onnxruntime, "openvino": prepare_openvino, "mnn": prepare_mnn,
           "ncnn": prepare_ncnn, "litert": prepare_litert}


def peak_rss_bytes():
    """VmHWM: of this program alone, where ru_maxrss may hold what the parent had before exec."""
    with open("/proc/self/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def version(name):
    """{"version"} when the peer can be imported, else {"error"}."""
    module, distribution = DISTRIBUTIONS[name]
    try:
        importlib.import_module(module)
        return {"version": importlib.metadata.version(distribution)}
    except Exception as error:  # a broken installation fails in many ways: all are the answer
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    if sys.argv[1:2] == ["versions"]:
        print(json.dumps({name: version(name) for name in DISTRIBUTIONS}))
        return 0
    name, model, image_path, threads, outputs_path = sys.argv[1:]
    image = np.load(image_path)
    run = PREPARE[name](model, image, int(threads))
    if name == "litert":
        del image  # its copy, in the order of its own tensors, is all that it reads
    run()
    start = time.perf_counter()
    outputs = run()
    seconds = time.perf_counter() - start
    peak = peak_rss_bytes()
    np.savez(outputs_path, *[np.asarray(output, np.float32) for output in outputs])
    print("\n" + json.dumps({"seconds": seconds, "peak_rss_bytes": peak}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
