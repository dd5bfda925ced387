"""Who takes part in bench_peers.py and what its tables say: test_bench_peers.py RFEXEC SOURCE.

Nothing is measured: no peer has to be installed."""
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

rfexec, source = (os.path.abspath(a) for a in sys.argv[1:3])
TOOLS = os.path.join(source, "tools")
sys.path.insert(0, TOOLS)
from peers import measure, tables, workshop  # noqa: E402
from peers.rfexec_program import Refused  # noqa: E402


def tool(name, *arguments):
    return subprocess.run([sys.executable, os.path.join(TOOLS, name), rfexec, *arguments],
                          capture_output=True, text=True, check=False)


def plan(*arguments):
    return tool("bench_peers.py", "--dry-run", *arguments).stdout


class Program:
    """In rfexec's place: its times are twice, then half LiteRT's."""

    threads = 2

    def bench(self, model, image, options):
        seconds = 2.0 if "--untiled" in options else 0.5
        return {"seconds": seconds, "peak_rss_bytes": 1 << 20, "macs_ratio": 1.0, "plan": "plan"}

    def fingerprints(self, model, size, options):
        return ["same"]

    def write_outputs(self, model, image, folder):
        raise AssertionError("there is no peer to compare with")


def contest(folder, name):
    """LiteRT and rfexec untiled and in a budget with a target, on a network of this name."""
    made = workshop.Workshop(folder, Program(), 10)
    made.image, made.hash = lambda size: "image.npy", lambda path: "0"
    onnx = workshop.pathlib.Path(folder) / "m.onnx"
    case = workshop.Case(name, "8x8", str(onnx), onnx)
    rows = [measure.Row("untiled"), measure.Row("1MiB", [], [(9.0, "plain")])]

    def run(script, *arguments, timeout=None):
        if script == "convert_litert.py":
            arguments[2].write_text("a file of LiteRT")
            return ""
        return '{"seconds": 1.0, "peak_rss_bytes": 1048576}\n'
    with mock.patch.object(measure, "python", run), mock.patch.object(workshop, "python", run):
        return measure.measure(made, case, rows, {"litert": {"version": "1"}}, 1)


class Peers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def refusal(self, name):
        return contest(self.folder.name, name)["peers"]["litert"]["refused"]

    def test_litert_takes_part_by_default_only_in_the_table_of_8_bits(self):
        self.assertIn("  LiteRT\n", plan("--table", "int8"))
        for arguments in (["--table", "engine"], ["mobilenet_v2:int8"],
                          ["--table", "int8", "--peers", "openvino"]):
            self.assertIn("  OpenVINO\n", plan(*arguments))
            self.assertNotIn("LiteRT", plan(*arguments))
        self.assertIn("  LiteRT\n", plan("resnet50:int8", "--peers", "openvino,litert"))

    def test_unknown_peers_are_named(self):
        self.assertIn("no peer 'lite': onnxruntime, openvino, mnn, ncnn, litert",
                      tool("bench_peers.py", "--peers", "lite").stderr)
        self.assertIn("no peer 'litert'", tool("bench_all.py", "--peers", "litert").stderr)

    def test_litert_is_measured_but_in_no_ratio(self):
        report = contest(self.folder.name, "mobilenet_v2:int8")
        self.assertIsNone(report["fastest"])
        self.assertFalse(report["rows"][1]["targets"][0]["met"])
        peer, untiled, _ = tables.lines(report)
        self.assertEqual(peer[2:], ["LiteRT", "1.00 s", "-", "-", "1 MiB", "-", "-",
                                    "other weights", "-"])
        self.assertEqual(untiled[2:6], ["rfexec untiled", "2.00 s", "-", "-"])
        note, = tables.notes(report)
        self.assertIn("Keras's MobileNetV2", note)
        self.assertTrue(note.endswith("time of LiteRT: 2.00 (untiled), 0.50 (1MiB)."), note)

    def test_networks_that_litert_does_not_run(self):
        for name in ("resnet18:int8", "unet:int8", "deeplab_v3:int8"):
            self.assertEqual(self.refusal(name), "Keras has no such network to convert for it")
        self.assertEqual(self.refusal("mobilenet_v2"), "takes part with networks of 8 bits only")
        self.assertEqual(tables.notes(contest(self.folder.name, "unet:int8")), [])

    def test_a_converter_that_fails_gives_its_reason(self):
        made = workshop.Workshop(self.folder.name, Program(), 10)
        made.hash = lambda path: "0"
        onnx = workshop.pathlib.Path(self.folder.name) / "m.onnx"
        case = workshop.Case("resnet50:int8", "8x8", str(onnx), onnx)
        blocked = {"PYTHONPATH": self.folder.name}  # a TensorFlow that cannot be imported
        with open(os.path.join(self.folder.name, "tensorflow.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('no module')\n")
        with mock.patch.dict(os.environ, blocked), self.assertRaises(Refused) as caught:
            made.model_for("litert", case)
        self.assertIn("TensorFlow, which makes LiteRT's files, is not installed",
                      str(caught.exception))
        self.assertFalse([name for name in os.listdir(self.folder.name) if "tflite" in name])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
