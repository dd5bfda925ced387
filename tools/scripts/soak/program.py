"""The program under test, run through starter.py, and what is known of its right answers."""

import hashlib
import json
import os
import signal
import subprocess
import sys

HANG = (300, signal.SIGKILL)


class Ended:
    def __init__(self, code, peak_bytes, seconds, out):
        self.code, self.peak_bytes, self.seconds = code, peak_bytes, seconds
        try:
            with open(out, encoding="utf-8") as file:
                self.document = json.load(file)
        except ValueError:
            self.document = None


class Program:
    def __init__(self, path, folder):
        self.path, self.out, self.err = os.path.abspath(path), f"{folder}/out.txt", f"{folder}/err.txt"
        starter = os.path.join(os.path.dirname(os.path.abspath(__file__)), "starter.py")
        self.starter = subprocess.Popen([sys.executable, "-I", "-S", starter], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def run(self, arguments, signals=()):
        moments = [(seconds, int(number)) for seconds, number in [*signals, HANG]]
        call = [self.path, *arguments], self.out, self.err, moments
        print(repr(call), file=self.starter.stdin, flush=True)
        code, kib, seconds = self.starter.stdout.readline().split()
        return Ended(int(code), int(kib) << 10, float(seconds), self.out)

    def words(self):
        """What the last run wrote on standard error."""
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def must(self, arguments):
        ended = self.run(arguments)
        if ended.code != 0:
            raise RuntimeError(f"rfexec {' '.join(arguments)}: exit code {ended.code}: {self.words()}")
        return ended

    def document(self, arguments):
        return self.must(arguments).document

    def close(self):
        self.starter.stdin.close()
        self.starter.wait()


def hashes(document):
    return [output["hash"] for output in document["outputs"]]


def files_in(folder):
    """Name and hash of every file, hidden ones too."""
    found = {}
    for entry in os.scandir(folder):
        with open(entry.path, "rb") as file:
            found[entry.name] = hashlib.sha256(file.read()).hexdigest()
    return found


class Answers:
    """What each subject must give: asked once, of an untiled run of one thread."""

    def __init__(self, program, folder):
        self.program, self.folder, self.known = program, folder, {}
        os.makedirs(folder, exist_ok=True)

    def empty_folder(self):
        for entry in os.scandir(self.folder):
            os.unlink(entry.path)

    def output_options(self, sink):
        return ["-o", f"{self.folder}/map.{sink[0]}", *sink[1:]] if sink else []

    def ask(self, subject, sink):
        """(hashes, files, peak that was planned, seconds); None where the program refuses the case, with
        exit code 2 or 3: a size that the network does not take, maps that no PNG can hold."""
        key = subject, tuple(sink)
        if key not in self.known:
            self.empty_folder()
            ended = self.program.run([*subject.arguments(), "--untiled", "--threads", "1",
                                      *self.output_options(sink)])
            if ended.code not in (0, 2, 3):
                raise RuntimeError(f"{subject.arguments()}: exit code {ended.code}: {self.program.words()}")
            self.known[key] = None if ended.code != 0 else (
                hashes(ended.document), files_in(self.folder), ended.document["plan"]["peak_bytes"], ended.seconds)
        return self.known[key]

    def smallest_budget(self, arguments):
        """Of this very command, whose refusal of 1 MiB names it."""
        ended = self.program.run([*arguments, "--memory", "1MiB"])
        if ended.code != 4:
            raise RuntimeError(f"{arguments} in 1 MiB: exit code {ended.code}: {self.program.words()}")
        return ended.document["smallest_bytes"]
