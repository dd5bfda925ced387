#!/usr/bin/env python3
"""What 1 to 1,024 ranks would make of an image, from the plan's own numbers: nothing is run.

    simulate_parts.py RFEXEC MODEL=HxW... [--weak] [--most 1024] [--by mpi|files] [--csv FILE] [--json FILE]
        [--plot FILE.svg] [--halos N] [figures of network and disk, below] [-- plan options of rfexec]

For each power of two N `rfexec plan MODEL --size HxW --parts N --json` says what every part of every round
computes, reads and writes; --weak makes the image N times as high, H rows for each rank. --by mpi is rfexec-mpi
(states over the network, one file that all write), files is run_parts.sh (parts and states as files, merged). Beside
it stands what does not exist in rfexec: ranks that fetch the rows at their seams from each other at every map
instead of making them again.

Time is what the plans predict for the slowest part of each round, plus all bytes of files over the disk's bandwidth,
plus messages; nothing overlaps. Every rank has a processor like the one whose constants the predictions have, and its
own link; the disk is shared. See docs/scaling.md."""

import argparse
import csv
import json
import subprocess
import sys

NPY_HEADER = 128
# What each process reads of a picture to open it, and to know it again: both ends and 62 places (part_identity.h).
OPEN_BYTES, CHECK_ENDS, CHECK_PLACES, CHECK_BYTES = 4112, 1 << 20, 62, 1 << 16
LIMITS = {"arithmetic": "the arithmetic of its own rows", "halo": "rows made again", "disk": "the disk",
          "checks": "every process reading the same places of the picture, to know it again",
          "states": "the rounds of states"}


class NoMoreParts(Exception):
    """The output has too few rows."""


def planned(options, model, size, parts):
    """The document of a plan; parts 0: of one process."""
    command = [options.rfexec, "plan", model, "--size", "%dx%d" % size, "--json", *options.plan]
    if parts:
        command += ["--parts", str(parts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2 and "rows" in done.stderr:
        raise NoMoreParts(done.stderr.strip())
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr.strip()))
    return json.loads(done.stdout)


def area(part):
    (y0, y1), (x0, x1) = part["image_rows"], part["image_columns"]
    return (y1 - y0) * (x1 - x0)


def check_bytes(image_bytes):
    """Of a picture file of so many bytes."""
    between = (image_bytes - 2 * CHECK_ENDS) // CHECK_PLACES
    all_of_it = between <= CHECK_BYTES
    return OPEN_BYTES + (image_bytes if all_of_it else 2 * CHECK_ENDS + CHECK_PLACES * CHECK_BYTES)


def alone(options, model, size):
    """One process without parts, in the form of a document of parts."""
    document = planned(options, model, size, 0)
    plan, (_, _, h, w) = document["plan"], document["input"]
    parts = planned(options, model, size, 1)
    output = parts.get("merge", {}).get("output_bytes") or sum(p["output_bytes"] for p in parts["parts"])
    part = {"macs": plan["macs"], "predicted_seconds": plan["predicted_seconds"], "image_rows": [0, h],
            "image_columns": [0, w], "peak_bytes": plan["peak_bytes"], "output_bytes": output}
    return dict(document, parts=[part], states=[], macs=plan["macs"], macs_untiled=plan["macs_untiled"],
                exchange=parts["exchange"], halos=[])


def steps_of(count):
    """Steps of a tree of so many ranks."""
    return (count - 1).bit_length()


def move_states(row, document, options):
    """Seconds and bytes of the rounds' states: up a tree of ranks and down again, or as files."""
    n, before = row["ranks"], 0
    for states in document["states"]:
        before += states["bytes"]
        row["state_bytes"] += states["bytes"]
        if options.by == "mpi":
            row["sent_bytes"] += 2 * (n - 1) * states["bytes"]
            row["network_seconds"] += 2 * steps_of(n) * (states["count"] * options.latency * 1e-6 +
                                                         states["bytes"] * 8e-9 / options.network)
            continue
        # a file has the states of the rounds before too; merge makes one of all, which the next round reads
        last = states["round"] == len(document["states"]) and "merge" in document
        row["states_written_bytes"] += (n if last else n + 1) * before
        row["states_read_bytes"] += (n if last else 2 * n) * before


def count_files(row, document, options):
    """Bytes read and written of the image and the output."""
    n, output = row["ranks"], [part["output_bytes"] for part in document["parts"]]
    last = document.get("merge")
    row["output_bytes"] = sum(output) if last is None else last["output_bytes"]
    if options.by == "mpi":
        row["written_bytes"] = row["output_bytes"] + NPY_HEADER
    else:
        row["written_bytes"] = sum(output) + NPY_HEADER * len(output)
        row["merge_read_bytes"] = row["written_bytes"]
        row["merge_written_bytes"] = row["output_bytes"] + NPY_HEADER
    processes = n if options.by == "mpi" else n * row["rounds"]
    row["check_bytes"] = processes * check_bytes(row["image_bytes"])
    row["check_seconds"] = row["check_bytes"] * 1e-6 / options.disk


def disk_seconds(row, options, read):
    """Without the checks."""
    moved = read + sum(row[name] for name in ("written_bytes", "merge_read_bytes", "merge_written_bytes",
                                              "states_read_bytes", "states_written_bytes"))
    return moved * 1e-6 / options.disk


def compute(row, document):
    """What the slowest part of each round takes, one round after the other."""
    rounds = [states["parts"] for states in document["states"]]
    if document["parts"]:
        rounds.append(document["parts"])
    if "merge" in document:  # one rank's
        rounds.append([dict(document["merge"], image_rows=[0, 0], image_columns=[0, 0], peak_bytes=0)])
    row["slowest_macs"] = sum(max(part["macs"] for part in parts) for parts in rounds)
    row["compute_seconds"] = sum(max(part["predicted_seconds"] for part in parts) for parts in rounds)
    row["peak_bytes"] = max(part["peak_bytes"] for parts in rounds for part in parts)
    row["rounds"] = len(rounds) - ("merge" in document)
    return sum(area(part) for parts in rounds for part in parts)


def exchange(row, document, options):
    """Ranks that fetch what windows reach beyond their rows, once per map; else as `row` is."""
    parts = document["exchange"]
    other = {"macs": max(part["macs"] for part in parts), "bytes": sum(part["bytes"] for part in parts),
             "rank_bytes": max(part["bytes"] for part in parts), "maps": max(part["maps"] for part in parts),
             "messages": max(part["messages"] for part in parts)}
    other["compute_seconds"] = row["compute_seconds"] * other["macs"] / row["slowest_macs"]
    other["halo_seconds"] = (other["maps"] * options.latency * 1e-6 + other["rank_bytes"] * 8e-9 / options.network)
    other["disk_seconds"] = disk_seconds(row, options, row["image_bytes"])
    other["seconds"] = (other["compute_seconds"] + other["halo_seconds"] + other["disk_seconds"] +
                        row["check_seconds"] + row["network_seconds"])
    return other


def simulate(options, model, size, n):
    """What N ranks take of an image of that size."""
    one = n == 1 and options.by == "mpi"
    document = alone(options, model, size) if one else planned(options, model, size, n)
    channels = document["input"][1]
    row = {"model": model, "rows": size[0], "columns": size[1], "channels": channels, "ranks": n,
           "macs": document["macs"], "macs_untiled": document["macs_untiled"],
           "merge_macs": document.get("merge", {}).get("macs", 0), "state_bytes": 0, "sent_bytes": 0,
           "states_read_bytes": 0, "states_written_bytes": 0, "merge_read_bytes": 0, "merge_written_bytes": 0,
           "network_seconds": 0.0}
    pixel = channels * options.sample_bytes
    row["image_bytes"] = size[0] * size[1] * pixel
    row["read_bytes"] = compute(row, document) * pixel
    count_files(row, document, options)
    move_states(row, document, options)
    row["macs_ratio"] = row["macs"] / row["macs_untiled"]
    row["disk_seconds"] = disk_seconds(row, options, row["read_bytes"])
    row["seconds"] = row["compute_seconds"] + row["disk_seconds"] + row["check_seconds"] + row["network_seconds"]
    row["exchange"] = exchange(row, document, options)
    own = row["exchange"]["compute_seconds"]
    shares = {"arithmetic": own, "halo": row["compute_seconds"] - own, "disk": row["disk_seconds"],
              "checks": row["check_seconds"], "states": row["network_seconds"]}
    row["limit"] = max(shares, key=shares.get)
    row["halos"] = document["halos"]
    return row


def scale(options, model, size):
    """Rows for 1, 2, 4, ... ranks, and why there are no more of them, or None."""
    rows, n = [], 1
    while n <= options.most:
        high = size[0] * n if options.weak else size[0]
        try:
            row = simulate(options, model, (high, size[1]), n)
        except NoMoreParts as words:
            return rows, str(words)
        first = rows[0] if rows else row
        work = n if options.weak else 1  # as often as much as one rank's
        row["speedup"] = work * first["seconds"] / row["seconds"]
        row["efficiency"] = row["speedup"] / n
        row["exchange"]["speedup"] = work * first["seconds"] / row["exchange"]["seconds"]
        rows.append(row)
        n *= 2
    return rows, None


def exchange_from(rows, times=1):
    """The number of ranks from which on exchanging is more than so many times as fast; None: never."""
    best = None
    for row in reversed(rows):
        if row["ranks"] == 1 or row["exchange"]["seconds"] * times >= row["seconds"]:
            break
        best = row["ranks"]
    return best


def human(value, step=1000, unit=""):
    for letter in ["", "k", "M", "G", "T"] if step == 1000 else ["", "Ki", "Mi", "Gi", "Ti"]:
        if abs(value) < step or letter[:1] == "T":
            return "%.3g %s%s" % (value, letter, unit) if value < step else "%d %s%s" % (value, letter, unit)
        value /= step
    return ""


def print_rows(model, size, rows, why, options):
    grows = "%d x %d pixels for each rank" if options.weak else "%d x %d pixels"
    print("%s, %s" % (model, grows % size))
    heads = ["ranks", "MACs", "x untiled", "slowest", "compute", "read", "checked", "written", "disk", "rounds",
             "states", "sent", "seconds", "speed-up", "efficiency", "limit", "halo rows", "exchanged", "speed-up"]
    lines = [heads]
    for row in rows:
        other = row["exchange"]
        lines.append([str(row["ranks"]), human(row["macs"]), "%.3f" % row["macs_ratio"], human(row["slowest_macs"]),
                      "%.3g s" % row["compute_seconds"], human(row["read_bytes"], 1024, "B"),
                      human(row["check_bytes"], 1024, "B"),
                      human(row["written_bytes"] + row["merge_written_bytes"] + row["states_written_bytes"], 1024, "B"),
                      "%.3g s" % (row["disk_seconds"] + row["check_seconds"]),
                      str(row["rounds"]), human(row["state_bytes"], 1024, "B"), "%.3g s" % row["network_seconds"],
                      "%.3g s" % row["seconds"], "%.2f" % row["speedup"], "%.1f %%" % (100 * row["efficiency"]),
                      row["limit"], human(other["rank_bytes"], 1024, "B"), "%.3g s" % other["seconds"],
                      "%.2f" % other["speedup"]])
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
    if why:
        print("no more ranks: %s" % why)
    at = [(times, exchange_from(rows, times)) for times in (1, 1.1, 2)]
    print("exchanging rows would be faster: " + ", ".join(
        "more than %g x %s" % (times, "from %d ranks on" % n if n else "never here") for times, n in at))
    print("what limits %d ranks: %s\n" % (rows[-1]["ranks"], LIMITS[rows[-1]["limit"]]))


def print_halos(row, options):
    """The maps whose rows would be exchanged."""
    print("%s, %d ranks: rows that a rank would fetch" % (row["model"], row["ranks"]))
    lines = [["map", "of rows", "fetched", "bytes", "time"]]
    for halo in row["halos"]:
        seconds = options.latency * 1e-6 + halo["part_bytes"] * 8e-9 / options.network
        lines.append([halo["map"], str(halo["map_rows"]), str(halo["rows"]), human(halo["part_bytes"], 1024, "B"),
                      "%.3g us" % (1e6 * seconds)])
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    for line in lines:
        print(line[0].ljust(widths[0]) + "".join("  " + c.rjust(w) for c, w in zip(line[1:], widths[1:])))
    again = row["compute_seconds"] - row["exchange"]["compute_seconds"]
    print("all of them %.3g s, against %.3g s of rows made again by the slowest rank\n"
          % (row["exchange"]["halo_seconds"], again))


def flat(row):
    """A row of the table of --csv."""
    out = {key: value for key, value in row.items() if key not in ("exchange", "halos")}
    out.update(("exchange_" + key, value) for key, value in row["exchange"].items())
    return out


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(flat(rows[0])), lineterminator="\n")
        table.writeheader()
        table.writerows(flat(row) for row in rows)


def plot(options, rows):
    """Speed-ups, drawn by rfexec chart."""
    lines = ["ideal,%d,%d" % (n, n) for n in sorted({row["ranks"] for row in rows})]
    for row in rows:
        lines.append("%s,%d,%.4f" % (row["model"].replace(",", " "), row["ranks"], row["speedup"]))
        lines.append("%s exchanged,%d,%.4f" % (row["model"].replace(",", " "), row["ranks"],
                                               row["exchange"]["speedup"]))
    kind = "weak scaling: the image grows with the ranks" if options.weak else "strong scaling: one image"
    about = "simulated, %s; network %g Gbit/s, %g us, disk %g MB/s" % (
        options.by, options.network, options.latency, options.disk)
    subprocess.run([options.rfexec, "chart", "-", "-o", options.plot, "--title", kind.capitalize(), "--subtitle", about,
                    "--x-label", "ranks", "--y-label", "speed-up over one process", "--log-x", "--log-y"],
                   input="\n".join(lines) + "\n", text=True, check=True, stdout=subprocess.DEVNULL)


def base_parser(words):
    """What simulating and measuring have in common."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rfexec")
    parser.add_argument("cases", nargs="+", metavar="MODEL=HxW")
    parser.add_argument("--weak", action="store_true", help="the image grows with the ranks: H rows for each")
    parser.add_argument("--network", type=float, default=10, help="Gbit/s of each rank's link (%(default)s)")
    parser.add_argument("--latency", type=float, default=50, help="microseconds of a message (%(default)s)")
    parser.add_argument("--disk", type=float, default=500, help="MB/s of the disk that all share (%(default)s)")
    return parser


def simulation_parser():
    parser = base_parser(__doc__)
    parser.add_argument("--most", type=int, default=1024, help="the most ranks (%(default)s)")
    parser.add_argument("--by", choices=["mpi", "files"], default="mpi", help="who carries states and outputs")
    parser.add_argument("--sample-bytes", type=int, default=1, help="of a picture's value (%(default)s)")
    parser.add_argument("--halos", type=int, metavar="N", help="the maps whose rows N ranks would exchange")
    for name in ("csv", "json", "plot"):
        parser.add_argument("--" + name, metavar="FILE")
    return parser


def parse(parser):
    """Options, and [model, (rows, columns)] of every case; what stands behind -- is of rfexec plan."""
    arguments, plan = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, plan = arguments[:at], arguments[at + 1:]
    options = parser.parse_args(arguments)
    options.plan = plan
    for name in ("network", "disk", "most", "sample_bytes"):
        if getattr(options, name, 1) <= 0:
            parser.error("--%s is to be more than 0" % name.replace("_", "-"))
    if options.latency < 0:
        parser.error("--latency is to be 0 or more")
    cases = []
    for case in options.cases:
        model, _, size = case.rpartition("=")
        try:
            h, w = (int(side) for side in size.split("x"))
        except ValueError:
            h = w = 0
        if not model or h < 1 or w < 1:
            parser.error("'%s' is not MODEL=HxW, such as fsrcnn=4096x4096" % case)
        cases.append((model, (h, w)))
    return options, cases


def main():
    options, cases = parse(simulation_parser())
    rows = []
    for model, size in cases:
        found, why = scale(options, model, size)
        if not found:
            sys.exit(why)
        print_rows(model, size, found, why, options)
        for row in found:
            if row["ranks"] == options.halos:
                print_halos(row, options)
        rows += found
    if options.csv:
        write_csv(options.csv, rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")
    if options.plot:
        plot(options, rows)


if __name__ == "__main__":
    main()
