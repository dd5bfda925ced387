"""Alternating rounds of all programs on one network and size.

Invariants: 1. a round runs every peer and every row of rfexec once, each in a process of its own, in
an order drawn anew (the same in every call), so that nobody always runs after the same one; 2. ratios are of the same round, their median is reported; 3. who drops out is
reported with the reason and has no figures; 4. a peer counts only if its outputs agree with
rfexec's: LiteRT, which has other weights, is measured but in no group.
"""

import json
import pathlib
import random
import statistics
import tempfile

from peers.rfexec_program import Refused, bits_options
from peers.workshop import python

COMPARED = ("onnxruntime", "openvino", "mnn", "ncnn")  # they run the network that rfexec runs
PEERS = (*COMPARED, "litert")
TITLES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "mnn": "MNN", "ncnn": "ncnn",
          "litert": "LiteRT"}
WITHOUT_WINOGRAD = ("onnxruntime", "openvino")
WITH_WINOGRAD = ("mnn", "ncnn")
GROUPS = {"all": COMPARED, "plain": WITHOUT_WINOGRAD, "winograd": WITH_WINOGRAD}
# Of the largest magnitude. A wrong conversion is far outside. Winograd's roundings stay inside, with
# 9e-3 (MNN, vgg16) the farthest seen; every table shows the figures.
AGREEMENT = 5e-2
# Of 8-bit networks: on processors without VNNI, ONNX Runtime adds pairs of products in 16 bits, which
# saturate; how far that is from the network's own numbers is shown, and no reason to leave it out.
INT8_AGREEMENT = 1.0


class Row:
    """One configuration of rfexec: a budget ("untiled" for none), more options, targets."""

    def __init__(self, budget, options=(), targets=()):
        self.budget, self.options, self.targets = budget, list(options), list(targets)

    def arguments(self):
        return (["--untiled"] if self.budget == "untiled" else ["--memory", self.budget]) \
            + self.options

    def name(self):
        return " ".join([self.budget] + self.options)


def installed():
    """Of each peer {"version"} or {"error"}."""
    return json.loads(python("child.py", "versions").strip().splitlines()[-1])


class Entrant:
    """A program in the rounds, a peer or a row of rfexec."""

    def __init__(self, title, once):
        self.title, self.once, self.results, self.refusal = title, once, [], None
        self.difference = self.identical = None

    def turn(self):
        if self.refusal:
            return
        try:
            self.results.append(self.once())
        except Refused as reason:
            rounds = len(self.results)
            self.refuse(f"in round {rounds + 1}: {reason}" if rounds else str(reason))

    def refuse(self, reason):
        """A program that failed in one round has no figures from the others either."""
        self.refusal, self.results = reason, []

    def seconds(self):
        return [result["seconds"] for result in self.results]

    def peak(self):
        return max(result["peak_rss_bytes"] for result in self.results)

    def report(self):
        if self.refusal:
            return {"refused": self.refusal}
        seconds = self.seconds()
        return {"seconds_median": statistics.median(seconds), "seconds": seconds,
                "peak_rss_bytes": self.peak()}


class Contest:
    """One network at one size."""

    def __init__(self, workshop, case, rows, versions, folder):
        self.workshop, self.case, self.rows = workshop, case, rows
        self.rfexec, self.folder = workshop.rfexec, pathlib.Path(folder)
        self.peers = {name: self.enter(name, versions[name]) for name in versions}
        self.ours = [Entrant("rfexec " + row.name(), self.row_runner(row)) for row in rows]

    def enter(self, name, version):
        """A peer with its model, or with the reason why it has none."""
        entrant = Entrant(TITLES[name], None)
        if "error" in version:
            entrant.refuse("not installed: " + version["error"])
            return entrant
        try:
            model = self.workshop.model_for(name, self.case)
            image = self.workshop.image(self.case.size)
        except Refused as reason:
            entrant.refuse(str(reason))
            return entrant

        def once():
            text = python("child.py", name, model, image, self.rfexec.threads, self.outputs(name),
                          timeout=self.workshop.timeout)
            return json.loads(text.strip().splitlines()[-1])
        entrant.once = once
        return entrant

    def outputs(self, name):
        return self.folder / f"{name}.npz"

    def row_runner(self, row):
        image = self.workshop.image(self.case.size)
        return lambda: self.rfexec.bench(self.case.model, image, row.arguments())

    def check_peers(self):
        """The untiled outputs of rfexec for the peers' picture against those of each peer."""
        compared = {name: peer for name, peer in self.peers.items() if name in COMPARED}
        if all(peer.refusal for peer in compared.values()):
            return
        reference = self.folder / "reference"
        reference.mkdir()
        try:
            self.rfexec.write_outputs(self.case.model, self.workshop.image(self.case.size),
                                      reference)
        except Refused as reason:
            for peer in compared.values():
                if not peer.refusal:
                    peer.refuse(f"nothing to compare its outputs with: rfexec: {reason}")
        for name, peer in compared.items():
            if peer.refusal:
                continue
            try:
                peer.difference = float(python("model_files.py", "compare", reference,
                                               self.outputs(name)))
            except Refused as reason:
                peer.refuse(str(reason))
                continue
            if not peer.difference <= (INT8_AGREEMENT if self.case.int8 else AGREEMENT):
                peer.refuse(f"its outputs differ by {peer.difference:.2g} of the largest magnitude")

    def check_rows(self):
        """Fingerprints of every row against the untiled run of the same arithmetic."""
        wanted = {}
        for row, entrant in zip(self.rows, self.ours):
            if entrant.refusal:
                continue
            bits = bits_options(row.options)
            try:
                if tuple(bits) not in wanted:
                    wanted[tuple(bits)] = self.rfexec.fingerprints(
                        self.case.model, self.case.size, ["--untiled"] + bits)
                entrant.identical = wanted[tuple(bits)] == self.rfexec.fingerprints(
                    self.case.model, self.case.size, row.arguments())
            except Refused as reason:
                entrant.refuse(f"its fingerprints: {reason}")

    def rounds(self, count):
        entrants = [*self.peers.values(), *self.ours]
        orders = random.Random(1)
        for i in range(count):
            for entrant in orders.sample(entrants, len(entrants)):
                entrant.turn()
            if i == 0:  # nobody's time is spent on wrong results
                self.check_peers()
        self.check_rows()

    def fastest(self, group):
        names = [name for name in GROUPS[group] if name in self.peers
                 and not self.peers[name].refusal]
        return min(names, default=None,
                   key=lambda name: statistics.median(self.peers[name].seconds()))

    def ratio(self, entrant, peer):
        pairs = zip(entrant.seconds(), self.peers[peer].seconds())
        return statistics.median(a / b for a, b in pairs)

    def row_report(self, row, entrant):
        report = {"run": row.name(), "options": row.arguments(), **entrant.report()}
        if entrant.refusal:
            report["targets"] = [{"at_most": limit, "of": group, "met": False}
                                 for limit, group in row.targets]
            return report
        first = entrant.results[0]
        report.update(plan=first["plan"], macs_ratio=first["macs_ratio"],
                      identical=entrant.identical)
        report["ratios"] = {group: self.ratio(entrant, self.fastest(group))
                            for group in GROUPS if self.fastest(group)}
        report["ratio_to_each"] = {name: self.ratio(entrant, name) for name, peer
                                   in self.peers.items() if not peer.refusal}
        if self.fastest("all"):
            report["memory_ratio"] = entrant.peak() / self.peers[self.fastest("all")].peak()
        report["targets"] = [self.target(report["ratios"], limit, group)
                             for limit, group in row.targets]
        return report

    def target(self, ratios, limit, group):
        """`met` only against a whole group: a peer that is missing might be the fastest."""
        missing = [name for name in GROUPS[group]
                   if name not in self.peers or self.peers[name].refusal]
        ratio = ratios.get(group)
        return {"at_most": limit, "of": group, "ratio": ratio, "without": missing,
                "met": ratio is not None and ratio <= limit and not missing}

    def report(self):
        fastest = self.fastest("all")
        return {
            "network": self.case.name, "size": self.case.size, "note": self.case.note,
            "fastest": fastest, "fastest_without_winograd": self.fastest("plain"),
            "peers": {name: {**peer.report(), "difference": peer.difference,
                             "fastest": name == fastest} for name, peer in self.peers.items()},
            "rows": [self.row_report(row, ours) for row, ours in zip(self.rows, self.ours)]}


def measure(workshop, case, rows, versions, rounds):
    """The report of one network and size, as plain data."""
    with tempfile.TemporaryDirectory(dir=workshop.folder) as folder:
        contest = Contest(workshop, case, rows, versions, folder)
        contest.rounds(rounds)
        return contest.report()
