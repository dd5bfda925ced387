"""Reports as tables of text."""

import math

from peers.convert_litert import NETWORKS
from peers.measure import TITLES

GROUP_TITLES = {"all": "the fastest", "plain": "the fastest without Winograd",
                "winograd": "MNN and ncnn"}
HEADER = ["network", "image", "run", "time", "of the fastest", "of the fastest without Winograd",
          "peak RSS", "memory ratio", "MAC ratio", "identical", "target"]


def mib(value):
    return f"{value / 2**20:.0f} MiB"


def seconds(value):
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def target_text(target):
    said = "met" if target["met"] else "missed"
    over = target.get("ratio") is not None and target["ratio"] > target["at_most"]
    if target.get("without") and not over:  # a peer more cannot mend a ratio that is too large
        said = "open, without " + ", ".join(TITLES[name] for name in target["without"])
    ratio = f"{target['ratio']:.2f} " if target.get("ratio") is not None else ""
    return f"{ratio}of {GROUP_TITLES[target['of']]}, at most {target['at_most']:.2f}: {said}"


def lines(report):
    """Cells of one network and size: the peers, the fastest in bold, then rfexec."""
    rows = []
    for name, peer in report["peers"].items():
        start = [report["network"], report["size"], TITLES[name]]
        if "refused" in peer:
            rows.append(start + [f"refused: {peer['refused']}"] + ["-"] * 7)
            continue
        if peer["fastest"]:
            start[2] = f"**{TITLES[name]}** (fastest)"
        rows.append(start + [seconds(peer["seconds_median"]), "1" if peer["fastest"] else "-",
                             "1" if name == report["fastest_without_winograd"] else "-",
                             mib(peer["peak_rss_bytes"]), "1" if peer["fastest"] else "-", "-",
                             "other weights" if peer["difference"] is None
                             else f"to {peer['difference']:.0e}", "-"])
    for row in report["rows"]:
        start = [report["network"], report["size"], "rfexec " + row["run"]]
        said = "; ".join(map(target_text, row["targets"])) or "-"
        if "refused" in row:
            rows.append(start + [f"refused: {row['refused']}"] + ["-"] * 6 + [said])
            continue
        rows.append(start + [
            seconds(row["seconds_median"]), number(row["ratios"].get("all")),
            number(row["ratios"].get("plain")), mib(row["peak_rss_bytes"]),
            number(row.get("memory_ratio")), number(row["macs_ratio"], 3),
            "yes" if row["identical"] else "NO", said])
    return rows


def notes(report):
    """Sentences that belong to the lines of one network and size."""
    own = f"{report['network']} {report['size']}: {report['note']}." if report["note"] else ""
    return [note for note in (own, litert_note(report)) if note]


def litert_note(report):
    """How rfexec compares with LiteRT, which the ratios of the table leave out; "" without it."""
    if "seconds_median" not in report["peers"].get("litert", {}):
        return ""
    ratios = [f"{row['ratio_to_each']['litert']:.2f} ({row['run']})" for row in report["rows"]
              if "ratio_to_each" in row]
    keras, _, differs = NETWORKS[report["network"]]
    return (f"{report['network']} {report['size']}: LiteRT runs Keras's {keras} with other weights "
            f"({differs}), so it is in no ratio of the table and never called the fastest. Time of "
            f"rfexec / time of LiteRT: {', '.join(ratios) or 'none'}.")


def body(rows):
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
                     for row in rows)


def table(rows, header=None):
    header = header or HEADER
    head = body([header]) + "\n|" + "---|" * len(header)
    return head + "\n" + body(rows) if rows else head


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
