"""rfexec against ONNX Runtime over all built-in networks and the ONNX files given.

    bench_all.py build/rfexec [FILE.onnx ...] [--sizes 512x640,1024x1280] [--only NAME,NAME]
        [--options "--conv direct"] [--threads 2] [--runs 3] [--markdown FILE] [--json FILE]

Every network runs untiled and in twice the smallest budget that rfexec names for it, in rounds that
alternate the programs; each run is a process of its own: load, one run to warm up, one timed run. A
line gives the median over the rounds of rfexec's time / the time of ONNX Runtime (of the fastest
peer, when --peers names more) in the same round. The end has the geometric mean of all lines and
those with the largest ratios. What a network or a program refuses is said and the rest goes on.

tools/requirements_peers.txt says what to install; "bench_peers.py --help" how figures are taken.
"""

import argparse
import shlex
import sys

from bench_peers import add_common_options, header, header_text, write_reports
from peers import tables
from peers.measure import COMPARED, Row, TITLES, installed, measure
from peers.rfexec_program import Refused, Rfexec
from peers.workshop import Workshop, label

HEADER = ["network", "image", "run", "rfexec", "fastest peer", "its time", "ratio", "peak RSS",
          "memory ratio", "identical"]
UNTILED, TWICE = "untiled", "twice the smallest"


def parser_of():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="rfexec")
    parser.add_argument("files", nargs="*", metavar="FILE.onnx", help="networks beside the built-in")
    parser.add_argument("--sizes", default="512x640,1024x1280",
                        help="rows x columns, with commas (default %(default)s)")
    parser.add_argument("--only", default="", metavar="NAMES",
                        help="of the built-in networks only these; 'none' for none")
    parser.add_argument("--options", default="", help="more options of rfexec, as one word")
    parser.add_argument("--worst", type=int, default=10, help="how many at the end (default 10)")
    parser.add_argument("--limit", type=float, default=1.15,
                        help="ratios above it are counted (default %(default)s)")
    add_common_options(parser, 3, COMPARED, ["onnxruntime"])
    return parser


def networks(args, rfexec):
    names = rfexec.builtins()
    wanted = [name for name in args.only.split(",") if name]
    if wanted == ["none"]:
        names = []
    elif wanted:
        # A built-in with parameters ("mobilenet_v2:0.5") is in no list; rfexec judges it.
        unknown = [name for name in wanted if name.split(":")[0] not in names]
        if unknown:
            sys.exit(f"bench_all.py: no built-in network {', '.join(unknown)}")
        names = wanted
    return names + args.files


def rows_of(rfexec, case, options):
    """Untiled and in twice the smallest budget."""
    twice = 2 * rfexec.smallest_bytes(case.model, case.size, options)
    return [Row(UNTILED, options), Row(str(twice), options)]


def lines(report):
    """Of one network and size, with the ratio of each line (None: it has none)."""
    peer = report["fastest"]
    found = []
    for kind, row in zip((UNTILED, TWICE), report["rows"]):
        name = kind if kind == UNTILED else f"{kind}, {tables.mib(int(row['options'][1]))}"
        start = [report["network"], report["size"], name]
        if "refused" in row:
            found.append((start + [f"refused: {row['refused']}"] + ["-"] * 6, None))
            continue
        if peer is None:
            reasons = "; ".join(f"{TITLES[name]} refused: {state['refused']}"
                                for name, state in report["peers"].items())
            found.append((start + [tables.seconds(row["seconds_median"]), reasons, "-", "-",
                                   tables.mib(row["peak_rss_bytes"]), "-",
                                   "yes" if row["identical"] else "NO"], None))
            continue
        ratio = row["ratios"]["all"]
        theirs = report["peers"][peer]["seconds_median"]
        found.append((start + [tables.seconds(row["seconds_median"]), TITLES[peer],
                               tables.seconds(theirs), f"{ratio:.2f}",
                               tables.mib(row["peak_rss_bytes"]), f"{row['memory_ratio']:.2f}",
                               "yes" if row["identical"] else "NO"], ratio))
    return found


def summary(args, found):
    """Geometric mean, worst lines, and how many have no ratio."""
    rated = [(cells, ratio) for cells, ratio in found if ratio is not None]
    text = [f"{len(rated)} lines with a ratio, {len(found) - len(rated)} without."]
    if rated:
        mean = tables.geometric_mean([ratio for _, ratio in rated])
        above = sum(ratio > args.limit for _, ratio in rated)
        text.append(f"Geometric mean {mean:.3f}; {above} above {args.limit:g}.")
        for kind in (UNTILED, TWICE):
            ratios = [ratio for cells, ratio in rated if cells[2].startswith(kind)]
            if ratios:
                text.append(f"- {kind}: {tables.geometric_mean(ratios):.3f} over {len(ratios)}")
        text.append("Largest ratios:")
        rated.sort(key=lambda pair: -pair[1])
        text += [f"- {ratio:.2f} {', '.join(cells[:3])}" for cells, ratio in rated[:args.worst]]
    differing = [cells for cells, _ in found if cells[-1] == "NO"]
    text += [f"- DIFFERENT OUTPUTS: {', '.join(cells[:3])}" for cells in differing]
    return "\n".join(text)


def run_one(args, workshop, model, size, versions):
    """(report, lines) of one network and size, refused or not."""
    try:
        case = workshop.case(model, size)
        rows = rows_of(workshop.rfexec, case, shlex.split(args.options))
    except Refused as reason:
        return ({"network": label(model), "size": size, "refused": str(reason)},
                [([label(model), size, f"refused: {reason}"] + ["-"] * 7, None)])
    report = measure(workshop, case, rows, versions, args.runs)
    return report, lines(report)


def print_plan(args, rfexec):
    """What --dry-run says."""
    peers = ", ".join(TITLES[name] for name in args.peers)
    print(f"{args.runs} rounds of {peers}, rfexec untiled, rfexec in twice the smallest budget; "
          f"{args.threads} threads" + (f"; {args.options}" if args.options else ""))
    for model in networks(args, rfexec):
        for size in args.sizes.split(","):
            print(f"{model} {size}")


def main():
    args = parser_of().parse_intermixed_args()
    rfexec = Rfexec(args.program, args.threads, args.timeout)
    if args.dry_run:
        print_plan(args, rfexec)
        return 0
    workshop = Workshop(args.work, rfexec, args.timeout)
    versions = installed()
    head = header(args, {name: versions[name] for name in args.peers})
    text, reports, found = header_text(head), [], []
    print(text + "\n\n" + tables.table([], HEADER), flush=True)
    for model in networks(args, rfexec):
        for size in args.sizes.split(","):
            report, more = run_one(args, workshop, model, size, head["peers"])
            reports.append(report)
            found += more
            print(tables.body([cells for cells, _ in more]), flush=True)
            everything = tables.table([cells for cells, _ in found], HEADER)
            write_reports(args, {**head, "summary": summary(args, found)}, reports,
                          f"{text}\n\n{everything}\n\n{summary(args, found)}")
    print("\n" + summary(args, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
