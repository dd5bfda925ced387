"""rfexec against ONNX Runtime, OpenVINO, MNN, ncnn and LiteRT: the same network, size, threads.

    bench_peers.py build/rfexec MODEL [MODEL ...] --sizes 1024x1024,2048x2048
        [--budgets 64MiB,128MiB] [--rows "200MiB:--conv direct" "untiled:--conv winograd"]
        [--threads 2] [--runs 5] [--markdown FILE] [--json FILE]
    bench_peers.py build/rfexec --table engine|int8 [--markdown FILE] [--json FILE]
    bench_peers.py build/rfexec --check

MODEL is an .onnx file or a built-in network, which is exported with 'rfexec export' first.
tools/requirements_peers.txt says what to install; --check whether it works.

Each round runs every peer, rfexec untiled, in every budget and in every row of --rows, in an order
drawn anew for each round. Each run is a process of its own: load, one run to warm up, one timed
run. Peers compute in float32 and choose Winograd as they do by default. A row gives medians over the
rounds; ratios are taken within a round, so that a machine whose speed drifts changes little.

  of the fastest   time / time of the peer with the smallest median, which is in bold
  without Winograd time / time of the faster of ONNX Runtime and OpenVINO
  peak RSS         by the kernel, of the whole process: the peers' with Python and the picture
  memory ratio     to the fastest peer
  MAC ratio        multiply-adds / those of the untiled run
  identical        fingerprints of all outputs are those of the untiled run with the same --conv;
                   peers: largest difference from rfexec / largest magnitude of the output, or
                   "other weights" (LiteRT)

rfexec's clock includes reading the picture, a .npy file; the peers' starts with it in memory. A
peer that is not installed, refuses a model or computes something else (more than 5e-2 of the largest magnitude away
from rfexec) is shown with the reason. Converted models are kept in --work.

LiteRT takes part in --table int8, or where --peers names it. It runs the same architecture with
weights that Keras draws, for mobilenet_v2:int8 and resnet50:int8; input and output are float32, all
between is int8. Its outputs are not compared, it is never called the fastest and no ratio of the
table is to it: a line below the table has the times of rfexec / its time. Making its files needs
TensorFlow.
"""

import argparse
import json
import os
import pathlib
import shlex
import sys

from peers import tables
from peers.engine_table import TABLES, default_peers
from peers.measure import COMPARED, GROUPS, PEERS, TITLES, Row, installed, measure
from peers.processor import describe, processor
from peers.rfexec_program import Refused, Rfexec
from peers.workshop import Workshop, label, pnnx_program


def default_work():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return str(pathlib.Path(base) / "rfexec-bench")


def parse_row(text):
    budget, _, options = text.partition(":")
    return Row(budget.strip() or "untiled", shlex.split(options))


def peers_of(known):
    """A parser of names with commas, each one of `known`."""
    def parse(text):
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no peer '{name}': {', '.join(known)}")
        return names
    return parse


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def add_common_options(parser, runs, known, peers):
    """Options that bench_all.py has too. `peers`: those of `known` that run by default."""
    parser.add_argument("--threads", type=positive, default=2, help="of every program (default 2)")
    parser.add_argument("--runs", type=positive, default=runs, help=f"rounds (default {runs})")
    parser.add_argument("--peers", type=peers_of(known), default=peers,
                        help=f"of {','.join(known)} (default {','.join(peers)})")
    parser.add_argument("--timeout", type=positive, default=1800,
                        help="seconds after which a run counts as refused (default 1800)")
    parser.add_argument("--work", default=default_work(), metavar="FOLDER",
                        help="exported and converted models (default %(default)s)")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables to this file as well")
    parser.add_argument("--json", metavar="FILE", help="write everything measured to this file")
    parser.add_argument("--dry-run", action="store_true", help="say what would run, run nothing")


def parser_of():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="rfexec")
    parser.add_argument("models", nargs="*", help=".onnx files or built-in networks")
    parser.add_argument("--sizes", default="1024x1024",
                        help="rows x columns, with commas (default %(default)s)")
    parser.add_argument("--budgets", default="", help="with commas; untiled always runs")
    parser.add_argument("--rows", nargs="+", default=[], metavar="BUDGET:OPTIONS", type=parse_row,
                        help="more rows of rfexec; BUDGET 'untiled' for none")
    parser.add_argument("--table", choices=sorted(TABLES),
                        help="networks, sizes, budgets and targets of docs/benchmarks.md")
    parser.add_argument("--check", action="store_true",
                        help="say which peers and converters are installed; exit code 1 if any "
                             "is missing")
    add_common_options(parser, 5, PEERS, COMPARED)
    parser.set_defaults(peers=None)  # the table decides
    return parser


def parse_arguments(words=None):
    args = parser_of().parse_intermixed_args(words)
    if args.peers is None:
        args.peers = default_peers(args.table)
    return args


def entries(args):
    """(model, size, rows) in the order in which they run."""
    if args.table:
        return TABLES[args.table]()
    rows = [Row("untiled")] + [Row(budget) for budget in args.budgets.split(",") if budget]
    return [(model, size, rows + args.rows) for model in args.models
            for size in args.sizes.split(",")]


def check(workshop):
    found, complete = installed(), True
    for name, state in found.items():
        complete = complete and "version" in state
        print(f"{TITLES[name]:14} {state.get('version') or 'MISSING: ' + state['error']}")
    for name, version in workshop.converter_versions().items():
        complete = complete and version is not None
        print(f"{name + ' (files)':14} {version or 'MISSING'}")
    try:
        print(f"{'pnnx program':14} {pnnx_program()}")
    except Refused as reason:
        print(f"{'pnnx program':14} MISSING: {reason}")
        complete = False
    return 0 if complete else 1


def print_plan(args):
    """What --dry-run says."""
    print(f"{args.runs} rounds, {args.threads} threads, peers: {', '.join(args.peers)}")
    for model, size, rows in entries(args):
        print(f"{model} {size}")
        for name in args.peers:
            print(f"  {TITLES[name]}")
        for row in rows:
            targets = [f"at most {limit:.2f} of {tables.GROUP_TITLES[group]} "
                       f"({', '.join(GROUPS[group])})" for limit, group in row.targets]
            print("  rfexec bench " + shlex.join([model, "--size", size] + row.arguments())
                  + ("".join("; target " + text for text in targets)))


def write_text(path, text):
    if path:
        pathlib.Path(path).write_text(text, encoding="utf-8")


def write_reports(args, head, reports, markdown):
    """After every network: a run of hours that is cut off leaves what it measured."""
    write_text(args.markdown, markdown + "\n")
    write_text(args.json, json.dumps({"schema": 1, **head, "results": reports}, indent=2) + "\n")


def header(args, versions):
    return {"processor": processor(), "threads": args.threads, "rounds": args.runs,
            "peers": versions}


def header_text(head):
    named = ", ".join(f"{TITLES[name]} {state.get('version', '(missing)')}"
                      for name, state in head["peers"].items())
    return (f"Processor: {describe(head['processor'])}\n{head['threads']} threads, medians of "
            f"{head['rounds']} alternating rounds. {named}.")


def main():
    args = parse_arguments()
    rfexec = Rfexec(args.program, args.threads, args.timeout)
    if args.dry_run:
        print_plan(args)
        return 0
    workshop = Workshop(args.work, rfexec, args.timeout)
    if args.check:
        return check(workshop)
    if not entries(args):
        sys.exit("bench_peers.py: name a model or a --table (--help says more)")
    found = installed()
    head = header(args, {name: found[name] for name in args.peers})
    text, reports, rows = header_text(head), [], []
    print(text, flush=True)
    for model, size, configurations in entries(args):
        try:
            case = workshop.case(model, size)
        except Refused as reason:
            reports.append({"network": label(model), "size": size, "refused": str(reason)})
            rows.append([label(model), size, f"refused: {reason}"] + ["-"] * 8)
            print(f"\n{label(model)} {size}: refused: {reason}", flush=True)
        else:
            reports.append(measure(workshop, case, configurations, head["peers"], args.runs))
            rows += tables.lines(reports[-1])
            print("\n" + tables.table(tables.lines(reports[-1])), flush=True)
            for note in tables.notes(reports[-1]):
                text += "\n" + note
                print(note, flush=True)
        write_reports(args, head, reports, text + "\n\n" + tables.table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
