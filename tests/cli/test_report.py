"""The page of `run --report`, read as others will: test_report.py RFEXEC MODEL.onnx WORK_DIRECTORY.

Held against what the run wrote and printed: counts of the histogram against the .npy file, the
pictures' pixels against its values, peaks and budget against the JSON. Needs Python alone."""
import base64
import bisect
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree

from png_files import read_png

rfexec, model, work = (os.path.abspath(a) for a in sys.argv[1:4])
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)


def run(*arguments, code=0):
    done = subprocess.run([rfexec, *arguments], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def read_npy(path):
    """Shape and values of a float32 .npy file."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10 : 10 + size].decode()
    assert "'<f4'" in header and "'fortran_order': False" in header, header
    shape = [int(n) for n in re.search(r"\(([\d, ]+)\)", header).group(1).split(",") if n.strip()]
    return shape, struct.unpack("<%df" % ((len(data) - 10 - size) // 4), data[10 + size :])


def write_npy(path, shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
    header += " " * (117 - len(header)) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % len(values), *values))


class Balance(html.parser.HTMLParser):
    """Tags are closed in order, and nothing is loaded from anywhere."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.check(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        self.check(tag, attributes)

    def check(self, tag, attributes):
        assert tag not in ("script", "link", "iframe", "object", "a"), tag
        for name, value in attributes:
            assert not name.startswith("on") and name not in ("href", "srcset"), (tag, name)
            assert name != "src" or value.startswith("data:image/png;base64,"), (tag, value[:40])

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


def read_page(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("<!DOCTYPE html>")
    assert "http" not in text and "@import" not in text and "url(" not in text
    assert not re.search(r'="[^"]*\b(nan|inf)\b', text), "no number in a picture"
    balance = Balance()
    balance.feed(text)
    assert balance.open == [], balance.open
    return xml.etree.ElementTree.fromstring(text), balance.text


def histogram(page):
    """(lo, hi, count) of each bar of the first output."""
    svg = next(e for e in page.iter("svg") if e.get("class") == "histogram")
    found = (re.fullmatch(r"(\S+) to (\S+): (\d+)", t.text) for t in svg.iter("title"))
    return [(float(m[1]), float(m[2]), int(m[3])) for m in found]


def check_run(model_name, source, *options):
    """A run with a page: its page, its JSON, its output's shape and values."""
    plain = json.loads(run("run", model_name, source, *options, "--json").stdout)
    done = run("run", model_name, source, *options, "--json", "-o", "out.npy", "--report", "page.html")
    document = json.loads(done.stdout)
    assert document["output"]["hash"] == plain["output"]["hash"], "the page changed bits"
    page, text = read_page("page.html")
    shape, values = read_npy("out.npy")
    bars = histogram(page)
    assert sum(b[2] for b in bars) == sum(1 for v in values if v - v == 0), bars
    rising = sorted(v for v in values if v - v == 0)
    for lo, hi, count in bars[1:-1]:  # edges are printed with six digits
        slack = 1e-5 * max(abs(lo), abs(hi))
        assert bisect.bisect_left(rising, hi - slack) - bisect.bisect_left(rising, lo + slack) <= count
        assert bisect.bisect_left(rising, hi + slack) - bisect.bisect_left(rising, lo - slack) >= count
    assert document["output"]["hash"] in text
    return page, text, document, shape, values


def check_pictures(page, shape, values):
    """Small maps are shown pixel by pixel: the darkest is the least value, the lightest the largest."""
    pictures = [e for e in page.iter("img") if e.get("class") != "overlay"]
    assert len(pictures) == min(4, shape[1])
    for c, picture in enumerate(pictures):
        w, h, rows = read_png(base64.b64decode(picture.get("src").split(",", 1)[1], validate=True))
        assert [h, w] == shape[2:], (w, h, shape)
        plane = values[c * h * w : (c + 1) * h * w]
        finite = [v for v in plane if v - v == 0]
        least, most = min(finite), max(finite)
        for y in range(h):
            for x in range(w):
                rgb = tuple(rows[y][3 * x : 3 * x + 3])
                value = plane[y * w + x]
                if value - value != 0:
                    assert rgb == (210, 30, 30), (c, y, x, rgb, value)
                elif value == least:
                    assert rgb == (68, 1, 84), (c, y, x, rgb)
                elif value == most:
                    assert rgb == (253, 231, 37), (c, y, x, rgb)


def overlay(page):
    """The page's small overlay, as rows of RGB, and its caption; None: it has none."""
    for figure in page.iter("figure"):
        if figure[0].get("class") == "overlay":
            w, h, rows = read_png(base64.b64decode(figure[0].get("src").split(",", 1)[1], validate=True))
            return [[r[3 * x : 3 * x + 3] for x in range(w)] for r in rows], "".join(figure.itertext())
    return None


def check_overlay(model_name, source, caption, *options):
    """A page alone and one beside --overlay: the small one has every so many pixels of the large."""
    run("run", model_name, source, "--report", "alone.html", *options)
    run("run", model_name, source, "--report", "both.html", "--overlay", "large.png", *options)
    with open("large.png", "rb") as file:
        w, h, rows = read_png(file.read())
    side = min(400, max(w, h))
    small_w, small_h = w * side // max(w, h), h * side // max(w, h)
    want = [[rows[y * h // small_h][3 * x : 3 * x + 3] for x in (i * w // small_w for i in range(small_w))]
            for y in range(small_h)]
    for page in ("alone.html", "both.html"):
        got, said = overlay(read_page(page)[0])
        assert got == want, (model_name, page, len(got), len(want))
        assert said.startswith(caption), said


# Within a budget: what the page says of memory is what the run said, and it is kept.
budget = 24 << 20
page, text, document, shape, values = check_run(model, "synthetic:640x720", "--memory", "24MiB")
check_pictures(page, shape, values)
level = {e.get("id"): int(e.get("data-bytes")) for e in page.iter("path") if e.get("data-bytes")}
assert level["budget"] == budget
assert document["measured"]["peak_rss_bytes"] <= budget, document["measured"]
assert 1 << 20 < level["peak"] <= document["measured"]["peak_rss_bytes"], level
assert "budget24.0 MiB" in text.replace("\n", ""), text[:800]
assert "plan" + document["plan"]["text"] in text.replace("\n", ""), document["plan"]
plan = next(e for e in page.iter("svg") if e.get("id") == "plan")
boxes = [e for e in plan.iter("rect") if e.find("title") is not None]
assert len(boxes) > 5 and any("at byte 0" in e.find("title").text for e in boxes)
rows = next(e for e in page.iter("table") if e.get("id") == "layers").findall("tr")[1:]
layers = [r for r in rows if r[0].get("colspan") is None]
total = sum(float(r[-3].text) for r in rows)
assert len(layers) == len({s for r in layers for s in [r[0].text]}) and len(layers) > 3
assert abs(total * 1e-3 / document["measured"]["seconds"] - 1) < 0.02, (total, document["measured"])
planned = next(e for e in page.iter("path") if e.get("id") == "planned").get("d")
assert planned.count("V") > 5

# The page's own memory counts: the smallest budget with it is larger than the one without.
smallest = []
for options in ([], ["--report", "none.html"]):
    done = run("run", model, "synthetic:640x720", "--memory", "1MiB", "--json", *options, code=4)
    smallest.append(json.loads(done.stdout)["smallest_bytes"])
assert smallest[1] > smallest[0] + (400 << 10), smallest
assert not os.path.exists("none.html")
done = run("run", model, "synthetic:640x720", "--memory", str(smallest[1]), "--json", "--report", "tight.html")
assert json.loads(done.stdout)["measured"]["peak_rss_bytes"] <= smallest[1]
read_page("tight.html")

# Streams hand their maps out in pieces; the picture is of the same values.
page, text, document, shape, values = check_run("fsrcnn", "synthetic:40x30", "--bands", "8")
check_pictures(page, shape, values)
assert "seeded, not trained" in text and overlay(page) is None, "an enlarged picture is no overlay"
# Vectors have no picture. The seventh network by stages of weights has boxes for them.
page, text, document, shape, values = check_run("squeezenet1_1", "synthetic:64x80", "--weights-by-stage")
assert not list(page.iter("img"))

# The input with an output over it: of shares by themselves the first channel or the one asked for, of
# scores the labels.
check_overlay(model, "synthetic:901x640", "channel 1 of 'defects'", "--overlay-of", "1", "--memory", "24MiB")
check_overlay(model, "synthetic:90x200", "labels of 'defects'", "--overlay-of", "labels")
check_overlay("deeplab_v3", "synthetic:72x64", "labels of ")
page, text = read_page(run("run", model, "synthetic:90x200", "--report", "page.html") and "page.html")
assert overlay(page)[1].startswith("channel 1 of 'defects'"), overlay(page)[1]
shown = ["".join(f.find("figcaption").itertext()) for f in page.iter("figure") if f[0].get("class") != "overlay"]
assert [words.split(":")[0] for words in shown] == ["channel 1", "channel 2", "channel 3"], shown  # as --overlay-of counts
assert "no such output" in run("run", model, "synthetic:90x200", "--report", "x.html", "--overlay-output", "no", code=2).stderr

# A map between two stages lies in a file: in no box of the arena once it is made, and with its time.
stages = [{"mode": "streamed", "targets": ["map.2"], "band_rows": 8, "spilled": ["map.2"]},
          {"mode": "streamed", "targets": ["deconv"], "band_rows": 16}]
with open("spilled.json", "w", encoding="utf-8") as file:
    json.dump({"schema": 1, "kind": "rfexec plan", "stages": stages}, file)
page, text, document, shape, values = check_run("fsrcnn", "synthetic:61x83", "--plan", "spilled.json", "--spill", ".")
assert "spilled maps" in text and "spilling maps" in text and "(null)" not in text
assert document["plan"]["spilled"]["written_bytes"] == 61 * 83 * 12 * 4
titles = [t.text for svg in page.iter("svg") if svg.get("id") == "plan" for t in svg.iter("title")]
assert titles and not [t for t in titles if t.startswith("map.2, whole maps")], titles

# NaN and infinities, and names that are markup.
name = "<b a=\"1\" c='2'>&lt;\u202e.onnx"
run("export", "fsrcnn", "--size", "48x48", "-o", name)
numbers = [0.25] * (3 * 48 * 48)
numbers[48 * 10 + 5] = float("nan")
numbers[48 * 40 + 40] = float("inf")
write_npy("in'\"&<i>.npy", (3, 48, 48), numbers)
page, text, document, shape, values = check_run(name, "in'\"&<i>.npy")
check_pictures(page, shape, values)
odd = sum(1 for v in values if v != v)
assert odd > 0 and "%d NaN" % odd in text, odd
assert page.find("body").find("h1").text == "<b a=\"1\" c='2'>&lt;\\xe2\\x80\\xae.onnx"
assert "in'\"&<i>.npy" in text
write_npy("nan.npy", (3, 32, 32), [float("nan")] * (3 * 32 * 32))
run("run", "fsrcnn", "nan.npy", "-o", "out.npy", "--report", "page.html")
page, text = read_page("page.html")
assert "0 finite" in text and "no finite value" in text

# Refusals, and nothing left behind.
before = sorted(os.listdir("."))
assert "must end in .html" in run("run", model, "synthetic:64x64", "--report", "x.txt", code=2).stderr
assert "no/x.html" in run("run", model, "synthetic:64x64", "--report", "no/x.html", code=5).stderr
run("run", model, "synthetic:64x64", "--report", "-", "--json", code=2)
assert sorted(os.listdir(".")) == before
done = run("run", model, "synthetic:64x64", "--report", "-")
assert done.stdout.startswith("<!DOCTYPE html>") and done.stdout.rstrip().endswith("</html>")
assert "measured" in done.stderr
print("test_report: all as expected")
