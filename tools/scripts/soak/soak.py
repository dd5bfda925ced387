"""Runs and kills of rfexec at random: see tools/scripts/soak.sh.

Every case is drawn from --seed and its own number. A run must end with exit code 0, with the fingerprints
and, byte by byte, the files of an untiled run of one thread, and its peak memory, by the kernel and by the
program's own account of VmHWM, may not pass its budget. After a kill there is under the final names what
was there before, or the right files, and nothing beside them:

- SIGTERM and SIGINT: exit code 5, or 0 when it was done before. A signal that comes before the program
  catches it ends it, and leaves nothing;
- SIGKILL: files may be left under temporary names where the file system has no nameless files, and, where
  it has them, a complete one when the end comes between giving it a name and renaming it. They are counted.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter

from program import Answers, Program, files_in, hashes
from subjects import FLAGS, SINKS, Pool

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
OLD = b"what was there before"


class Soak:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.program = Program(args.program, folder)
        maker = os.path.join(os.path.dirname(args.program), "tests", "make_big_image")
        self.pool = Pool(self.program, folder, maker if os.access(maker, os.X_OK) else None)
        self.answers = Answers(self.program, os.path.join(folder, "outputs"))
        self.counts, self.largest, self.failed = Counter(), 0.0, 0
        self.subjects = []

    def fail(self, kind, arguments, why):
        self.failed += 1
        self.counts[kind] += 1
        print(f"FAILED rfexec {' '.join(arguments)}: {why}\n  {self.program.words()[-300:]}", flush=True)

    def rng(self, *names):
        return random.Random(f"{self.args.seed} {names}")

    def case(self, rng):
        """A subject, one in five a new one, a sink that its outputs fit into, and the command."""
        while True:
            if not self.subjects or rng.random() < 0.2:
                self.subjects.append(self.pool.draw(rng, len(self.subjects)))
            subject, sink = rng.choice(self.subjects), rng.choice(SINKS)
            if self.answers.ask(subject, sink) is None:
                continue
            command = [*subject.arguments(), "--threads", str(rng.randint(1, 3)), *rng.choice(FLAGS),
                       *self.answers.output_options(sink)]
            return command, self.answers.ask(subject, sink)

    def judge_run(self, command, budget, answer):
        wanted, files, _, _ = answer
        self.answers.empty_folder()
        full = [*command, "--memory", str(budget)]
        ended = self.program.run(full)
        if ended.code != 0:
            return self.fail("other exit codes", full, f"exit code {ended.code}")
        peak = max(ended.peak_bytes, ended.document["measured"]["peak_rss_bytes"])
        self.largest = max(self.largest, peak / budget)
        if peak > budget:
            return self.fail("over budget", full, f"a peak of {peak} bytes")
        if hashes(ended.document) != wanted:
            return self.fail("wrong fingerprints", full, f"{hashes(ended.document)}, not {wanted}")
        if files_in(self.answers.folder) != files:
            return self.fail("wrong files", full, f"{files_in(self.answers.folder)}, not {files}")
        self.counts["good"] += 1
        return None

    def run(self, number):
        """A budget from the smallest to ample; half of them near the smallest, where plans differ most."""
        rng = self.rng("run", number)
        command, answer = self.case(rng)
        smallest = self.answers.smallest_budget(command)
        more = max(answer[2] - smallest, 1 << 20) * 1.25
        self.judge_run(command, int(smallest + more * rng.random() ** rng.choice([1, 4])), answer)

    def smallest(self, number):
        command, answer = self.case(self.rng("smallest", number))
        self.judge_run(command, self.answers.smallest_budget(command), answer)

    def kill(self, number):
        rng = self.rng("kill", number)
        command, answer = self.case(rng)
        while not answer[1]:
            command, answer = self.case(rng)
        if rng.random() < 0.5:
            command += ["--memory", str(self.answers.smallest_budget(command) * 3 // 2)]
        self.answers.empty_folder()
        old = rng.sample(sorted(answer[1]), rng.randint(0, len(answer[1])))
        for name in old:
            with open(os.path.join(self.answers.folder, name), "wb") as file:
                file.write(OLD)
        before = files_in(self.answers.folder)
        number, moment = rng.choice(SIGNALS), rng.uniform(0, 1.1) * answer[3]
        ended = self.program.run(command, [(moment, number)])
        self.judge_kill(command, number, ended.code, before, answer[1])

    def judge_kill(self, command, number, code, before, wanted):
        name = signal.Signals(number).name
        left = files_in(self.answers.folder)
        beside = {file: content for file, content in left.items() if file not in wanted}
        self.counts[name] += 1
        if code == 0:
            self.counts[f"{name} too late"] += 1
        if code not in (0, -number) and not (code == 5 and number != signal.SIGKILL):
            return self.fail("other ends", command, f"{name}: exit code {code}")
        if code == -number and number != signal.SIGKILL:
            self.counts[f"{name} before it was caught"] += 1
        if code == 0 and left != wanted:
            return self.fail("wrong files", command, f"{name}, exit code 0: {left}, not {wanted}")
        for file in wanted:
            if left.get(file) not in (before.get(file), wanted[file]):
                return self.fail("wrong files", command, f"{name}: {file} is neither the old nor the new one")
        if beside and (number != signal.SIGKILL or code == 0):
            return self.fail("files left", command, f"{name}: {sorted(beside)}")
        if self.args.nameless and not set(beside.values()) <= set(wanted.values()):
            return self.fail("files left", command, f"{name}: {sorted(beside)}, not complete")
        self.counts["left by SIGKILL"] += len(beside)
        self.counts["good"] += 1
        return None

    def repeat(self, what, count, until):
        """Calls `what` for each number, until the clock says `until`; returns how many there were."""
        for number in range(count):
            if time.monotonic() >= until:
                return number
            what(number)
        return count


def has_nameless_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        return False
    return True


def table(soak, done, seconds):
    counts = soak.counts
    rows = [("random runs", done["run"]), ("runs in the smallest budget", done["smallest"]),
            ("over budget", counts["over budget"]), ("largest share of a budget", f"{100 * soak.largest:.1f} %"),
            ("wrong fingerprints", counts["wrong fingerprints"]), ("other exit codes", counts["other exit codes"]),
            ("kills", done["kill"])]
    for number in SIGNALS:
        name = signal.Signals(number).name
        early = counts[f"{name} before it was caught"]
        note = f", {early} before it was caught" if number != signal.SIGKILL else ""
        rows.append((f"by {name}", f"{counts[name]}, {counts[name + ' too late']} after the end{note}"))
    rows += [("wrong files", counts["wrong files"]), ("other ends", counts["other ends"]),
             ("incomplete files, or any after a signal that is caught", counts["files left"]),
             ("complete temporary files after SIGKILL" if soak.args.nameless else
              "temporary files after SIGKILL (no nameless files here)", counts["left by SIGKILL"]),
             ("networks, sizes and pictures", len(soak.subjects)), ("wall time", f"{seconds / 60:.0f} min"),
             ("seed", soak.args.seed)]
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="soak.sh",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, metavar="N")
    parser.add_argument("--smallest", type=int, default=100, metavar="N", help="runs in the smallest budget")
    parser.add_argument("--kills", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, default=3600, metavar="S", help="no new case after them")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--work", metavar="DIR", help="folder for pictures and outputs (default: the system's for temporary files)")
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3)
    parser.add_argument("program", nargs="?", default=os.path.normpath(os.path.join(root, "build", "rfexec")))
    args = parser.parse_args()
    if args.work:
        os.makedirs(args.work, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="soak.", dir=args.work)
    args.nameless = has_nameless_files(folder)
    begun = time.monotonic()
    soak = Soak(args, folder)
    # Runs may take half of the time, kills what is left.
    shares = {"run": 0.5, "smallest": 0.55, "kill": 1.0}
    wanted = {"run": args.runs, "smallest": args.smallest, "kill": args.kills}
    done = {}
    for name, share in shares.items():
        done[name] = soak.repeat(getattr(soak, name), wanted[name], begun + share * args.seconds)
        if done[name] < wanted[name]:
            print(f"{done[name]} of {wanted[name]} ({name}): the time is over", flush=True)
    soak.program.close()
    if soak.failed:
        print(f"pictures are kept in {folder}")
    else:
        shutil.rmtree(folder)
    print(table(soak, done, time.monotonic() - begun))
    print(f"{soak.counts['good']} passed, {soak.failed} failed")
    sys.exit(1 if soak.failed or not soak.counts["good"] else 0)


if __name__ == "__main__":
    main()
