"""A small process that starts the program and gives the kernel's account of its memory.

That account begins with the memory of who starts it, so this imports next to nothing (python3 -I -S).
It takes 9 MiB; what is no more than that says nothing of the program, and counts as 0. A line of standard input is the repr of
(arguments, file for standard output, file for standard error, [(seconds, signal), ...]): each signal is
sent so many seconds after the one before, as long as the program has not ended. The answer is a line:
exit code (negative: the signal that ended it), peak in KiB, seconds.
"""

import os
import signal
import sys
import time

BACK_TO_DEFAULT = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ}


def start(arguments, out, err):
    for_writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(arguments[0], arguments, os.environ, setsigmask=[], setsigdef=BACK_TO_DEFAULT,
                          file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                                        (os.POSIX_SPAWN_OPEN, 1, out, for_writing, 0o666),
                                        (os.POSIX_SPAWN_OPEN, 2, err, for_writing, 0o666)])


def run(arguments, out, err, signals):
    """A child that has ended keeps its number until it is waited for: no other one gets the signal."""
    begun = time.monotonic()
    child = start(arguments, out, err)
    for seconds, number in signals:
        if signal.sigtimedwait([signal.SIGCHLD], seconds) is not None:
            break
        os.kill(child, number)
    _, status, usage = os.wait4(child, 0)
    while signal.sigtimedwait([signal.SIGCHLD], 0) is not None:
        pass
    peak = usage.ru_maxrss if usage.ru_maxrss > own_peak() else 0
    return os.waitstatus_to_exitcode(status), peak, time.monotonic() - begun


def own_peak():
    """In KiB, as the kernel has it."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) + 512


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    for line in sys.stdin:
        code, peak, seconds = run(*eval(line))  # what soak.py wrote by repr
        print(code, peak, f"{seconds:.6f}", flush=True)


main()
