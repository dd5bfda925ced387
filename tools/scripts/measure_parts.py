#!/usr/bin/env python3
"""What parts of a run take, measured, beside what simulate_parts.py says: MACs and bytes, not seconds.

    measure_parts.py RFEXEC MODEL=HxW... --folder DIR [--ranks 1 2 4] [--weak] [--mpi RFEXEC-MPI] [--mpiexec mpirun]
        [--csv FILE] [-- plan options of rfexec]

Runs run_parts.sh with one process or, with --mpi, so many ranks, on a picture of float32 that is made in DIR.
MACs are those that the runs print. Bytes of the picture are what all processes read, as the kernel counts it (/proc),
less what the same run reads of a synthetic picture. Bytes written are the files' sizes. Exit code 1: something differs
from the simulation, the bytes read by more than 512 for each process, the MACs of a single rank, which leaves out
what no output reads, by more than 1 %."""

import array
import csv
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import simulate_parts

# Of each process: files beside parts name the picture, and the kernel words of different length.
SLACK_BYTES = 1536
# More ranks than processors, and root in a container, for Open MPI 4 and 5.
MPI = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_parts.sh")


def write_picture(path, channels, h, w):
    """Values from 0 to 1 that no two rows share, with the header of 128 bytes that npy files have."""
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }" % (channels, h, w)
    text += " " * (127 - 10 - len(text)) + "\n"
    values = array.array("f", [i * 7919 % 1009 / 1009 for i in range(w + 1009)])
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
        for row in range(channels * h):
            file.write(values[row % 1009:row % 1009 + w].tobytes())


def bytes_read():
    """By this process and all that it has waited for."""
    with open("/proc/self/io", encoding="ascii") as file:
        return int(re.search(r"rchar: (\d+)", file.read())[1])


def documents(text):
    """The JSON documents among a program's words."""
    found, at, decoder = [], text.find("{"), json.JSONDecoder()
    while at >= 0:
        try:
            document, end = decoder.raw_decode(text, at)
            found.append(document)
        except json.JSONDecodeError:
            end = at + 1
        at = text.find("{", end)
    return found


def run(command, **variables):
    """Its JSON documents, and the bytes that it read."""
    before = bytes_read()
    done = subprocess.run(command, env=dict(os.environ, **variables), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s: exit code %d: %s" % (" ".join(command), done.returncode, (done.stdout + done.stderr)[-2000:]))
    return documents(done.stdout + done.stderr), bytes_read() - before


def run_once(options, model, picture, n, out):
    """The run's documents and bytes read, from a clean folder."""
    shutil.rmtree(out + ".parts", ignore_errors=True)
    if os.path.exists(out):
        os.remove(out)
    words = [model, picture, "-o", out] if options.mpi else [str(n), "1", model, picture, out]
    if options.mpi:
        return run([options.mpiexec, "-n", str(n), options.mpi, *words, "--exchange", "never", "--json",
                    *options.plan], **MPI)
    return run(["sh", SCRIPT, *words, "--json", *options.plan], RFEXEC=options.rfexec)


def sizes(pattern):
    return sum(os.path.getsize(path) for path in glob.glob(pattern))


def measure(options, model, size, n, channels):
    """Of a real run of N parts, under the names of the simulation's rows."""
    picture, out = os.path.join(options.folder, "in.npy"), os.path.join(options.folder, "out.npy")
    write_picture(picture, channels, *size)
    _, without = run_once(options, model, "synthetic:%dx%d" % size, n, out)
    found, read = run_once(options, model, picture, n, out)
    os.remove(picture)
    row = {"picture_bytes": read - without}
    if options.mpi:
        (document,) = found
        row["macs"] = document["ranks"]["macs"] if "ranks" in document else document["measured"]["macs"]
        row["written_bytes"] = os.path.getsize(out)
        return row
    # run_parts.sh makes the parts of a round one after the other
    macs = [document["measured"]["macs"] for document in found if document["command"] == "run"]
    row["macs"] = sum(macs)
    row["slowest_macs"] = sum(max(macs[at:at + n]) for at in range(0, len(macs), n))
    row["written_bytes"] = sizes(out + ".parts/part*.npy")
    row["merge_written_bytes"] = os.path.getsize(out)
    row["states_written_bytes"] = sizes(out + ".parts/*.states")
    return row


def simulated(options, model, size, n):
    """The same of the simulation, and how far each may be off."""
    row = simulate_parts.simulate(options, model, size, n)
    rest = row["merge_macs"]  # merge computes it and prints no MACs; ranks count it
    if not options.mpi:
        row["macs"] -= rest
        row["slowest_macs"] -= rest
    row["picture_bytes"] = row["read_bytes"] + row["check_bytes"]
    slack = SLACK_BYTES * n * row["rounds"]
    allowed = {"picture_bytes": slack}
    if options.mpi and n == 1:  # a share, if of one: rows and columns that nothing reads are left out
        allowed["macs"] = row["macs"] // 100
    if not options.mpi:  # run_parts.sh asks for the plan, which opens the picture
        row["picture_bytes"] += simulate_parts.OPEN_BYTES
    return row, allowed


def compare(options, model, size, n):
    """A line of the table, and whether all is as simulated."""
    told, slack = simulated(options, model, size, n)
    there = measure(options, model, size, n, told["channels"])
    line = {"model": model, "rows": size[0], "columns": size[1], "by": options.by, "ranks": n,
            "macs_untiled": told["macs_untiled"], "rounds": told["rounds"]}
    same = True
    for name, value in there.items():
        line[name], line["simulated_" + name] = value, told[name]
        if abs(value - told[name]) > slack.get(name, 0):
            same = False
            print("%s %dx%d, %d ranks by %s: %s is %d, simulated %d" %
                  (model, *size, n, options.by, name, value, told[name]), file=sys.stderr)
    return line, same


def main():
    parser = simulate_parts.base_parser(__doc__)
    parser.add_argument("--folder", required=True, help="for pictures, parts and outputs")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--mpi", metavar="RFEXEC-MPI")
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--csv", metavar="FILE")
    options, cases = simulate_parts.parse(parser)
    options.by, options.sample_bytes = "mpi" if options.mpi else "files", 4
    os.makedirs(options.folder, exist_ok=True)
    lines, same = [], True
    for model, size in cases:
        for n in options.ranks:
            high = size[0] * n if options.weak else size[0]
            line, as_simulated = compare(options, model, (high, size[1]), n)
            same &= as_simulated
            lines.append(line)
            print("%(model)s %(rows)dx%(columns)d, %(ranks)d by %(by)s: %(macs)d MACs, %(picture_bytes)d bytes of the "
                  "picture, %(written_bytes)d written" % line +
                  " (simulated %(simulated_macs)d, %(simulated_picture_bytes)d, %(simulated_written_bytes)d)" % line,
                  flush=True)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(lines)
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
