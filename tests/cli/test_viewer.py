"""The folder of `run --viewer`, read as a viewer will: test_viewer.py RFEXEC MODEL.onnx WORK_DIRECTORY.

The image's tiles are held against the image, the output's against the picture of --overlay, every
smaller level against means that are calculated here. Needs Python alone. What a browser shows of it:
tests/acceptance/viewer_page.py."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree

from png_files import read_png, write_png
from tiff_files import DEGREES, METRES, write_geotiff

rfexec, model, work = (os.path.abspath(a) for a in sys.argv[1:4])
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)
TILE = 512


def run(*arguments, code=0):
    done = subprocess.run([rfexec, *arguments], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def files_of(folder):
    """The files of a folder and what they have."""
    found = {}
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            found[os.path.relpath(path, folder)] = read_bytes(path)
    return found


def script(folder, name, before, after):
    """The JSON in a script, which has the texts `before` and `after` around it."""
    text = read_bytes(os.path.join(folder, name)).decode()
    assert text.startswith(before) and text.endswith(after), (name, text[:80])
    return json.loads(text[len(before) : len(text) - len(after)])


def view_of(folder):
    return script(folder, "view.js", "const rfexec_view = ", ";\n")


def answers_of(folder, name):
    return script(folder, name + ".js", 'rfexec_answers("%s", ' % name, ");\n")


def level_of(folder, level, w, h, channels):
    """Rows of pixels of a level, and its number of files."""
    rows, files = [], 0
    for row in range(-(-h // TILE)):
        band = [b""] * min(TILE, h - row * TILE)
        for col in range(-(-w // TILE)):
            path = "%s_files/%d/%d_%d.png" % (folder, level, col, row)
            width, height, tile = read_png(read_bytes(path), channels)
            assert (width, height) == (min(TILE, w - col * TILE), len(band)), path
            band = [line + part for line, part in zip(band, tile)]
            files += 1
        rows += band
    assert len(os.listdir("%s_files/%d" % (folder, level))) == files
    return rows


def halved(rows, w, channels):
    """The next smaller level: means of 2 x 2 pixels, with alpha weighted by it, rounded half up."""
    out = []
    for y in range(0, len(rows), 2):
        pair, line = rows[y : y + 2], []
        for x in range(0, w, 2):
            pixels = [r[channels * i : channels * (i + 1)] for r in pair for i in range(x, min(x + 2, w))]
            weights = [p[3] if channels == 4 else 1 for p in pixels]
            total = sum(weights)
            for c in range(3):
                value = sum(weight * p[c] for weight, p in zip(weights, pixels))
                line.append((2 * value + total) // (2 * total) if total else 0)
            if channels == 4:
                line.append((2 * total + len(pixels)) // (2 * len(pixels)))
        out.append(bytes(line))
    return out


def check_pyramid(name, w, h, channels):
    """Returns the rows of the largest level."""
    about = xml.etree.ElementTree.parse(name + ".dzi").getroot()
    space = "{http://schemas.microsoft.com/deepzoom/2008}"
    assert about.tag == space + "Image" and about.attrib == {"Format": "png", "Overlap": "0", "TileSize": "512"}
    assert about.find(space + "Size").attrib == {"Width": str(w), "Height": str(h)}
    levels = (max(w, h) - 1).bit_length() + 1
    assert sorted(map(int, os.listdir(name + "_files"))) == list(range(levels))
    largest = rows = level_of(name, levels - 1, w, h, channels)
    for level in range(levels - 2, -1, -1):
        rows = halved(rows, w, channels)
        w = -(-w // 2)
        assert level_of(name, level, w, len(rows), channels) == rows, (name, level)
    assert (w, len(rows)) == (1, 1)
    return largest


def picture(path, w, h):
    rows = [bytes((x * y * (3 + c) // 7 + 40 * c + x // 3) % 256 for x in range(w) for c in range(3)) for y in range(h)]
    write_png(path, w, h, rows)
    return rows


def check_tiles(w, h):
    """An image of some tiles: its pixels, those of the map beside the overlay, and the same bytes of
    every plan."""
    rows = picture("in.png", w, h)
    shown = ("--overlay-of", "2", "--threshold", "0.05", "--points", "points.geojson")
    run("run", model, "in.png", "--untiled", "--viewer", "seen", *shown)
    run("run", model, "in.png", "--viewer", "beside", "--overlay", "overlay.png", *shown[:2])  # without points
    shutil.rmtree("beside")
    assert sorted(os.listdir("seen")) == [
        "image.dzi", "image_files", "index.html", "map.dzi", "map_files", "points.js", "view.js"]
    assert check_pyramid("seen/image", w, h, 3) == rows
    colours = check_pyramid("seen/map", w, h, 4)
    _, _, overlay = read_png(read_bytes("overlay.png"))
    covered = 0
    for row, colour, want in zip(rows, colours, overlay):
        for i in range(3 * w):
            alpha = colour[i // 3 * 4 + 3] / 255
            mixed = row[i] * (1 - alpha) + colour[i // 3 * 4 + i % 3] * alpha
            assert abs(mixed - want[i]) < 1.02, (i, mixed, want[i])
        covered += sum(a > 128 for a in colour[3::4])
    assert 0 < covered < w * h
    first = files_of("seen")
    for plan in (("--bands", "8", "-j", "2"), ("--tiles", "2x3"), ("--memory", "24MiB", "-j", "3")):
        shutil.rmtree("seen")
        done = json.loads(run("run", model, "in.png", *plan, "--viewer", "seen/", *shown, "--json").stdout)
        assert files_of("seen") == first, plan
        shows = view_of("seen")["layers"][1]["shows"]
        with open("points.geojson", encoding="utf-8") as file:
            points = len(json.load(file)["features"])
        assert done["viewer"]["folder"] == "seen/"
        assert re.fullmatch(re.escape(shows) + "; %d points of '.+'" % points, done["viewer"]["shows"])
        assert done["measured"]["peak_rss_bytes"] <= 24 << 20 or plan[0] != "--memory"
    shutil.rmtree("seen")


def check_answers():
    """Scripts of answers are those of their files; boxes come from any kind of file."""
    regions = ("--threshold", "0.2", "--regions", "regions.geojson", "--points", "points.geojson")
    run("run", model, os.path.abspath("in.png"), *regions, "--viewer", "seen")
    view = view_of("seen")
    for name in ("regions", "points"):
        with open(name + ".geojson", encoding="utf-8") as file:
            want = json.load(file)
        assert answers_of("seen", name) == want and len(want["features"]) > 3
        about = next(one for one in view["answers"] if one["file"] == name)
        assert about == {"file": name, "count": len(want["features"]), "first": 0, "coordinates": [1, 0, 0, 0, 1, 0]}
    assert view["layers"][0] == {"files": "image", "title": "image", "shows": "in.png"}
    assert view["layers"][1]["shows"].startswith("regions of 'defects'")
    assert view["map"] is None and view["metres"] is None
    _, high, tile = read_png(read_bytes("seen/map_files/%d/0_0.png" % (view["levels"] - 1)), 4)
    # half transparent, as inside of regions: their outlines are lines of the page
    assert {a for line in tile for a in line[3::4]} == {0, 128} and high == TILE
    page = read_bytes("seen/index.html").decode()
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
    assert "http" not in page and "fetch(" not in page and "import" not in page
    shutil.rmtree("seen")
    with open("names.txt", "w", encoding="utf-8") as file:
        file.write('a "b" \\ c\n' * 80)
    for end in ("json", "csv"):
        boxes = ("--boxes", "boxes." + end, "--score", "0.0005", "--iou", "1", "--classes", "names.txt")
        run("run", "yolov8n", "synthetic:96x160", *boxes, "--viewer", "seen")
        found = answers_of("seen", "boxes")["features"]
        if end == "json":
            with open("boxes.json", encoding="utf-8") as file:
                want = json.load(file)["boxes"]
        assert len(found) == len(want) > 0 and not os.path.exists("seen/map.dzi")
        for got, box in zip(found, want):
            left, top, right, bottom = box["box"]
            assert got["properties"]["label"] == box["label"]
            assert got["properties"]["classification"]["name"] == box["name"]
            assert struct.pack("f", got["properties"]["score"]) == struct.pack("f", box["score"])
            ring = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
            for a, b in zip(got["geometry"]["coordinates"][0], ring):
                assert all(struct.pack("f", u) == struct.pack("f", v) for u, v in zip(a, b)), (a, b)
        assert view_of("seen")["answers"][0]["coordinates"] is None
        shutil.rmtree("seen")


def check_turned():
    """Boxes with an angle: those in memory, where the file is JSON, are those of a GeoJSON file."""
    found = []
    for name in ("turned.json", "turned.geojson"):
        run("run", "yolov8n", "synthetic:160x192", "--head", "yolov8-obb", "--boxes", name, "--viewer", "seen")
        found.append(answers_of("seen", "boxes")["features"])
        shutil.rmtree("seen")
    assert len(found[0]) == len(found[1]) > 0
    for one, other in zip(*found):
        assert one["properties"]["label"] == other["properties"]["label"]
        for a, b in zip(one["geometry"]["coordinates"][0], other["geometry"]["coordinates"][0]):
            assert all(struct.pack("f", u) == struct.pack("f", v) for u, v in zip(a, b)), (a, b)
    ring = found[0][0]["geometry"]["coordinates"][0]
    assert len({x for x, _ in ring}) == 4, "it is turned"


def geotiff(path, w, h, keys):
    """A grey GeoTIFF of pixels of 0.5 x 0.25 metres or degrees at (1000, 5000)."""
    data = bytes((x * 3 + y * 5) % 256 for y in range(h) for x in range(w))
    write_geotiff(path, w, h, data, (0.5, 0.25), (1000, 5000), keys)


def check_places():
    """Pixels, their coordinates on the earth, and those of the answers."""
    shown = ("--threshold", "0.1", "--regions", "regions.geojson", "--viewer", "seen")

    def run_on(*options):
        shutil.rmtree("seen", ignore_errors=True)
        run("run", model, "place.tif", *shown, *options)
        view = view_of("seen")
        return view["map"], view["metres"], view["answers"][0]["coordinates"]

    geotiff("place.tif", 96, 64, METRES)
    on_earth = [0.5, 0, 1000, 0, -0.25, 5000]
    assert run_on() == (on_earth, [0.5, 0.25], on_earth)
    assert run_on("--coordinates", "pixels") == (on_earth, [0.5, 0.25], [1, 0, 0, 0, 1, 0])
    inner = [0.5, 0, 1008, 0, -0.25, 4998]
    assert run_on("--region", "8,16,64,96") == (inner, [0.5, 0.25], inner)
    assert run_on("--region", "8,16,64,96", "--coordinates", "pixels")[2] == [1, 0, 16, 0, 1, 8]
    geotiff("place.tif", 96, 64, DEGREES)
    assert run_on() == (on_earth, None, on_earth)
    shutil.rmtree("seen")


def check_refusals():
    def refused(code, words, *options):
        done = run("run", model, "in.png", "--overlay-of", "1", *options, code=code)
        assert words in done.stderr, done.stderr

    os.makedirs("there/inner")
    refused(5, "there: is there already, and a folder is not replaced", "--viewer", "there")
    assert os.listdir("there") == ["inner"]
    refused(5, "no/such: cannot write into its folder", "--viewer", "no/such")
    low = ("--threshold", "0.2")
    refused(2, "--viewer draws the regions of a file .geojson: --regions 'a.csv' is none", "--viewer", "seen",
            "--regions", "a.csv", *low)
    refused(2, "--viewer draws the points of a file .geojson: --points 'a.csv' is none", "--viewer", "seen",
            "--points", "a.csv", *low)
    refused(2, "--viewer", "--viewer", "seen", "--part", "1/2", "-o", "part.npy")
    done = run("run", model, "in.png", "--viewer", "seen", code=2)
    assert "--viewer: output 'defects' has 3 channels" in done.stderr
    done = run("run", "mobilenet_v2", "synthetic:64x64", "--viewer", "seen", code=2)
    assert "--viewer: no output of 'mobilenet_v2' is a map" in done.stderr
    assert not os.path.exists("seen")


def check_budget():
    """A run in the smallest budget that is named for it, with rows that are long beside the image."""
    shown = ("--overlay-of", "labels", "--viewer", "seen", "-j", "1", "--json")
    for size in ("96x6000", "700x64"):
        done = run("run", model, "synthetic:" + size, "--memory", "1MiB", *shown, code=4)
        smallest = json.loads(done.stdout)["smallest_bytes"]
        done = run("run", model, "synthetic:" + size, "--memory", str(smallest), *shown)
        peak = json.loads(done.stdout)["measured"]["peak_rss_bytes"]
        assert peak <= smallest, (size, peak, smallest)
        shutil.rmtree("seen")


def check_signal():
    """A run that is stopped while it writes tiles leaves nothing."""
    before = set(os.listdir("."))
    child = subprocess.Popen([rfexec, "run", model, "synthetic:1500x3000", "--overlay-of", "1", "--viewer", "seen"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    tiles = []
    while not tiles:
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.01)
        tiles = [name for name in set(os.listdir(".")) - before
                 if os.path.isdir(name + "/image_files") and os.listdir(name + "/image_files")]
    child.send_signal(signal.SIGINT)
    assert child.wait() == 5
    assert set(os.listdir(".")) == before, set(os.listdir(".")) - before


check_tiles(1100, 70)
check_tiles(30, 1030)
check_answers()
check_turned()
check_places()
check_refusals()
check_budget()
check_signal()
print("test_viewer: tiles, answers, places, refusals")
