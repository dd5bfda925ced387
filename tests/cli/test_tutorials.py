"""Runs the commands that the documentation shows: test_tutorials.py RFEXEC SOURCE_DIRECTORY WORK_DIRECTORY.

Tutorials: every ```console block, each line after "$ " in order, in one folder per page: commands of rfexec, "head", "cmp", and
"python3 NAME.py" with the ```python block that begins with "# NAME.py". What is shown
below a command are lines of its output, stdout and stderr together, in their order; "..." alone stands for
any lines, and at the end of a line for the rest of it. Of lines that tell of the machine (MACHINE) the
first word alone has to be there. At most two processors and the kernels for AVX2 are used, as plans hang on
both. "$ echo $?" shows the exit code; every other command ends with 0. A measured peak is within the command's --memory. README: every command in an indented block, with
stand-ins for the user's files."""
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys

rfexec, source, work = (os.path.abspath(a) for a in sys.argv[1:4])
# Times, and plans: they are chosen for the processor's caches and instructions.
MACHINE = {"plan", "predicted", "MACs", "time", "measured", "seconds"}
OPTIONAL = re.compile("groups ")  # where caches are known
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
failures = 0
commands = 0


def fail(page, command, words):
    global failures
    failures += 1
    print("%s: $ %s\n    %s" % (page, command, words), file=sys.stderr)


def run(command, shell=False):
    """Exit code and all lines."""
    global commands
    commands += 1
    folder = os.path.dirname(rfexec)
    environment = dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"], RFX_KERNELS="avx2")
    done = subprocess.run(
        command if shell else shlex.split(command), shell=shell, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


def same(shown, line):
    shown, line = shown.rstrip(), line.rstrip()
    if shown.endswith("..."):
        return line.startswith(shown[:-3].rstrip())
    first = shown.split(" ", 1)[0]
    if first in MACHINE:
        return line.split(" ", 1)[0] == first
    return shown == line


def first_difference(shown, lines):
    """What of the shown lines is not in the output; None: all of it is."""
    at, anywhere = 0, False
    shown = [line for line in shown if not OPTIONAL.match(line)]
    lines = [line for line in lines if not OPTIONAL.match(line)]
    for text in shown:
        if text.strip() == "...":
            anywhere = True
            continue
        start = at
        while at < len(lines) and not same(text, lines[at]):
            at = at + 1 if anywhere else len(lines)
        if at >= len(lines):
            return "shown: %r\n    comes: %r" % (text, lines[start : start + 3])
        at, anywhere = at + 1, False
    return None if anywhere or at == len(lines) else "not shown: %r" % lines[at]


def check_peak(page, command, lines):
    budget = re.search(r"--memory (\d+)MiB", command)
    for line in lines:
        peak = re.match(r"measured +([\d.]+) (KiB|MiB|GiB) peak", line)
        # what verify keeps is not in the budget
        if budget and peak and command.startswith("rfexec run"):
            if float(peak[1]) * UNITS[peak[2]] > int(budget[1]) << 20:
                fail(page, command, "over the budget: " + line)


def enter(folder):
    path = os.path.join(work, folder)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    os.chdir(path)
    for name in ("defect_net.onnx", "phase_net.onnx", "defect_kinds.txt"):
        shutil.copy(os.path.join(source, "data", name), path)
    os.mkdir("photos")
    for seed in (1, 2, 3):
        code, lines = run("rfexec run fsrcnn synthetic:200x240:%d --range -1,1 -o photos/%d.png" % (seed, seed))
        assert code == 0, lines


def steps_of(text):
    """[command, shown lines] of all blocks of a page."""
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append([line[2:], []])
            else:
                steps[-1][1].append(line)
    return steps


def check_page(path):
    page = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    steps = steps_of(text)
    if not steps:
        fail(page, "", "no command")
    enter(page)
    scripts = re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```$", text, re.S | re.M)
    for script, name in scripts:
        with open(name, "w", encoding="utf-8") as file:
            file.write(script)
        if not any(command == "python3 " + name for command, _ in steps):
            fail(page, name, "the page does not run it")
    code = 0
    for k, (command, shown) in enumerate(steps):
        if command == "echo $?":
            if shown != [str(code)]:
                fail(page, command, "shown %r, it is %d" % (shown, code))
            continue
        program = command.split(" ", 1)[0]
        if program not in ("rfexec", "head", "cmp", "python3"):
            fail(page, command, "no command of rfexec")
            continue
        code, lines = run(command.replace("python3", sys.executable, 1) if program == "python3" else command)
        said = k + 1 < len(steps) and steps[k + 1][0] == "echo $?"
        if code != 0 and not said:
            fail(page, command, "exit code %d: %s" % (code, lines[-1:]))
        difference = first_difference(shown, lines)
        if difference:
            fail(page, command, difference)
        if not shown and program == "rfexec":
            fail(page, command, "nothing is shown")
        check_peak(page, command, lines)


def check_readme():
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        shown = re.findall(r"^    (rfexec .*)$", file.read(), re.M)
    if len(shown) < 8:
        fail("README.md", "", "%d commands" % len(shown))
    enter("README")
    for line in ("rfexec export squeezenet1_1 --size 224x224 -o net.onnx",
                 "rfexec run fsrcnn synthetic:112x112 -o photo.png"):
        code, lines = run(line)
        assert code == 0, lines
    os.mkdir("data")
    shutil.move("defect_net.onnx", "data")
    for name in ("huge.png", "image.png", "mask.png"):
        shutil.copy("photo.png", name)
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 64, 64), }".ljust(117) + "\n"
    with open("images.npy", "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode())
        file.write(bytes(4 * 2 * 3 * 64 * 64))
    with open("names.txt", "w", encoding="utf-8") as file:
        file.writelines("class %d\n" % k for k in range(1000))
    for command in shown:
        command = command.split(" # ")[0].rstrip()
        code, lines = run(command)
        if code != 0:
            fail("README.md", command, "exit code %d: %s" % (code, lines[-1:]))
        check_peak("README.md", command, lines)


os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
tutorials = os.path.join(source, "site", "tutorials")
for name in sorted(os.listdir(tutorials)):
    check_page(os.path.join(tutorials, name))
check_readme()
print("%d commands, %d failures" % (commands, failures))
sys.exit(1 if failures or commands == 0 else 0)
