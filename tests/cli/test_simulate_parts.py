"""What simulate_parts.py makes of a plan's numbers: test_simulate_parts.py RFEXEC SOURCE WORK.

Times and bytes that can be reckoned on paper from numbers that are given, where a limit lies, and that the tables
and the figure are written. That its MACs and bytes are those of runs, test_simulated_files holds it to."""
import csv
import json
import os
import subprocess
import sys
import unittest

rfexec, source, work = (os.path.abspath(a) for a in sys.argv[1:4])
SCRIPT = os.path.join(source, "tools", "scripts", "simulate_parts.py")
sys.path.insert(0, os.path.dirname(SCRIPT))
import simulate_parts  # noqa: E402


def part(macs, seconds, rows, output=0):
    return {"macs": macs, "predicted_seconds": seconds, "image_rows": rows, "image_columns": [0, 10],
            "peak_bytes": 1, "output_bytes": output}


# 4 ranks, an image of 40 x 10 pixels, 2 rounds of states and one of the output.
PLAN = {"input": [1, 3, 40, 10], "macs": 240, "macs_untiled": 80, "states": [
            {"round": 1, "count": 2, "bytes": 1000, "parts": [part(10, 1, [0, 10])] * 3 + [part(15, 2, [9, 20])]},
            {"round": 2, "count": 1, "bytes": 500, "parts": [part(20, 3, [0, 10])] * 4}],
        "parts": [part(25, 4, [0, 10], 300)] * 3 + [part(40, 6, [30, 40], 300)], "halos": [],
        "exchange": [{"macs": 20, "bytes": 100, "maps": 2, "messages": 2}] * 3 +
                    [{"macs": 22, "bytes": 4000, "maps": 3, "messages": 5}]}


class Options:
    """What the command line has, with round figures: 8 Gbit/s are 1e9 bytes a second."""

    weak, most, by, network, latency, disk, sample_bytes, plan = False, 1024, "mpi", 8, 1000, 0.001, 2, []


def simulated(document=None, **changes):
    options = Options()
    for name, value in changes.items():
        setattr(options, name, value)
    simulate_parts.planned = lambda *_: document or PLAN
    return simulate_parts.simulate(options, "net", (40, 10), 4)


class Reckoned(unittest.TestCase):
    def test_slowest_part_of_each_round(self):
        row = simulated()
        self.assertEqual(row["slowest_macs"], 15 + 20 + 40)
        self.assertEqual(row["compute_seconds"], 2 + 3 + 6)
        self.assertEqual(row["rounds"], 3)
        self.assertEqual(row["macs_ratio"], 3)

    def test_bytes_by_mpi(self):
        row = simulated()
        pixels = (3 * 10 + 11 + 4 * 10 + 4 * 10) * 10
        self.assertEqual(row["read_bytes"], pixels * 3 * 2)
        self.assertEqual(row["check_bytes"], 4 * (4112 + 40 * 10 * 3 * 2))
        self.assertEqual(row["written_bytes"], 4 * 300 + 128)
        self.assertEqual(row["merge_read_bytes"] + row["merge_written_bytes"] + row["states_written_bytes"], 0)
        self.assertEqual(row["disk_seconds"], (row["read_bytes"] + row["written_bytes"]) / 1000)
        self.assertEqual(row["check_seconds"], row["check_bytes"] / 1000)

    def test_bytes_by_files(self):
        row = simulated(by="files")
        self.assertEqual(row["written_bytes"], 4 * (300 + 128))
        self.assertEqual(row["merge_read_bytes"], 4 * (300 + 128))
        self.assertEqual(row["merge_written_bytes"], 4 * 300 + 128)
        self.assertEqual(row["check_bytes"], 12 * (4112 + 40 * 10 * 3 * 2))  # 3 processes for each part
        self.assertEqual(row["states_written_bytes"], 5 * 1000 + 5 * 1500)  # a file has earlier rounds' states
        self.assertEqual(row["states_read_bytes"], 8 * 1000 + 8 * 1500)  # by merge, then by the next round
        self.assertEqual(row["network_seconds"], 0)

    def test_what_merge_computes(self):
        last = dict(PLAN, parts=[], merge={"macs": 7, "predicted_seconds": 0.5, "output_bytes": 40})
        row = simulated(last, by="files")
        self.assertEqual(row["slowest_macs"], 15 + 20 + 7)
        self.assertEqual(row["compute_seconds"], 2 + 3 + 0.5)
        self.assertEqual(row["rounds"], 2)
        self.assertEqual(row["written_bytes"], 0)
        self.assertEqual(row["merge_written_bytes"], 40 + 128)
        self.assertEqual(row["states_written_bytes"], 5 * 1000 + 4 * 1500)  # the last ones become the output
        self.assertEqual(row["states_read_bytes"], 8 * 1000 + 4 * 1500)
        self.assertEqual(simulated(last)["written_bytes"], 40 + 128)

    def test_states_go_up_and_down_a_tree(self):
        row = simulated()
        # two steps up and two down: 3 messages of a millisecond and 1500 bytes in each
        self.assertAlmostEqual(row["network_seconds"], 4 * (3 * 0.001 + 1500e-9))
        self.assertEqual(row["sent_bytes"], 2 * 3 * 1500)
        self.assertEqual([simulate_parts.steps_of(n) for n in (1, 2, 3, 4, 5, 1024)], [0, 1, 2, 2, 3, 10])

    def test_exchange(self):
        row = simulated()
        other = row["exchange"]
        self.assertAlmostEqual(other["compute_seconds"], 11 * 22 / 75)
        self.assertAlmostEqual(other["halo_seconds"], 3 * 0.001 + 4000e-9)
        self.assertEqual(other["bytes"], 4300)
        whole = 40 * 10 * 3 * 2  # every pixel is read once
        self.assertAlmostEqual(other["disk_seconds"], (whole + row["written_bytes"]) / 1000)
        self.assertAlmostEqual(other["seconds"], other["compute_seconds"] + other["halo_seconds"] +
                               other["disk_seconds"] + row["check_seconds"] + row["network_seconds"])

    def test_limits(self):
        self.assertEqual(simulated(disk=1e9)["limit"], "halo")
        self.assertEqual(simulated()["limit"], "checks")
        self.assertEqual(simulated(disk=1e9, latency=1e9)["limit"], "states")
        far = dict(PLAN, parts=[part(25, 4, [0, 4000], 300)] * 4)
        self.assertEqual(simulated(far)["limit"], "disk")
        own = dict(PLAN, exchange=[{"macs": 70, "bytes": 0, "maps": 0, "messages": 0}] * 4)
        self.assertEqual(simulated(own, disk=1e9)["limit"], "arithmetic")

    def test_where_exchange_wins(self):
        rows = [{"ranks": n, "seconds": 2, "exchange": {"seconds": s}}
                for n, s in ((1, 1), (2, 1), (4, 3), (8, 1), (16, 1))]
        self.assertEqual(simulate_parts.exchange_from(rows), 8)  # from there on, not at 2 alone
        self.assertEqual(simulate_parts.exchange_from(rows, 1.9), 8)
        self.assertIsNone(simulate_parts.exchange_from(rows, 2))
        self.assertEqual(simulate_parts.exchange_from(rows[:2]), 2)
        self.assertIsNone(simulate_parts.exchange_from(rows[:3]))
        self.assertIsNone(simulate_parts.exchange_from(rows[:1]))

    def test_checks_of_large_pictures(self):
        self.assertEqual(simulate_parts.check_bytes(1000), 4112 + 1000)
        self.assertEqual(simulate_parts.check_bytes(10 ** 9), 4112 + (2 << 20) + 62 * 65536)


class Program(unittest.TestCase):
    def run_script(self, *arguments, code=0):
        done = subprocess.run([sys.executable, SCRIPT, rfexec, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def test_tables(self):
        os.makedirs(work, exist_ok=True)
        names = {kind: os.path.join(work, "out." + kind) for kind in ("csv", "json")}
        said = self.run_script("fsrcnn=96x64", "unet_instance=64x64", "--most", "4", "--halos", "4", "--csv",
                               names["csv"], "--json", names["json"], "--", "-j", "1")
        self.assertIn("what limits 4 ranks: ", said)
        self.assertIn("fsrcnn, 4 ranks: rows that a rank would fetch", said)
        with open(names["csv"], encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        with open(names["json"], encoding="utf-8") as file:
            again = json.load(file)
        self.assertEqual([(row["model"], row["ranks"]) for row in rows],
                         [(m, n) for m in ("fsrcnn", "unet_instance") for n in "124"])
        self.assertEqual([int(row["macs"]) for row in rows], [row["macs"] for row in again])
        self.assertEqual([row["rounds"] for row in again], [1, 1, 1, 1, 19, 19])
        first, last = again[0], again[2]
        self.assertEqual(first["speedup"], 1)
        self.assertEqual(last["speedup"], first["seconds"] / last["seconds"])
        self.assertLess(last["exchange"]["macs"], last["slowest_macs"])

    def test_weak(self):
        path = os.path.join(work, "weak.json")
        os.makedirs(work, exist_ok=True)
        self.run_script("fsrcnn=40x64", "--weak", "--most", "4", "--json", path, "--", "-j", "1")
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        self.assertEqual([row["rows"] for row in rows], [40, 80, 160])
        self.assertEqual(rows[2]["macs_untiled"], 4 * rows[0]["macs_untiled"])
        self.assertEqual(rows[2]["speedup"], 4 * rows[0]["seconds"] / rows[2]["seconds"])

    def test_words(self):
        self.assertIn("no more ranks: ", self.run_script("yolov8n=96x64", "--most", "16"))  # maps of 12 rows
        self.assertIn("is not MODEL=HxW", self.run_script("fsrcnn", code=2))
        self.assertIn("neither a readable file", self.run_script("nosuch=64x64", code=1))
        self.assertIn("more than 0", self.run_script("fsrcnn=64x64", "--disk", "0", code=2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
