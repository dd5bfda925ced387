"""The page of `run --viewer` in Chromium: viewer_page.py RFEXEC MODEL.onnx WORK_DIRECTORY.

Opens it from the disk, moves, zooms and switches layers with the pointer as a user does, and looks
at pixels of the screen: those of the image, at every level, and those of answers, in coordinates of
pixels and of the earth. Needs chromium and chromedriver (Debian: chromium, chromium-driver), which
it speaks to by WebDriver; exit code 77 where they are missing."""
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from png_files import read_png, write_png  # noqa: E402
from tiff_files import METRES, write_geotiff  # noqa: E402

rfexec, model, work = (os.path.abspath(a) for a in sys.argv[1:4])
WIDE, HIGH = 900, 600  # of the window
W, H, BLOCK = 1500, 1100, 15  # odd, so that means of 2 x 2 pixels mix blocks


class Browser:
    """A page in Chromium without a window."""

    def __init__(self, driver, chromium):
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            port = re.search(r"on port (\d+)", line)
            if port and int(port[1]) > 0:
                break
        self.at = "http://127.0.0.1:%s" % port[1]
        options = {"binary": chromium, "args": ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                                               "--force-device-scale-factor=1", "--force-color-profile=srgb",
                                               "--window-size=%d,%d" % (WIDE, HIGH)]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.at += "/session/" + self.post("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        self.devtools("Emulation.setDeviceMetricsOverride", width=WIDE, height=HIGH, deviceScaleFactor=1, mobile=False)

    def post(self, path, body, method="POST"):
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.at + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())["value"]

    def close(self):
        with contextlib.suppress(OSError):
            self.post("", None, "DELETE")
        self.driver.terminate()
        self.driver.wait()

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def script(self, text, *arguments):
        return self.post("/execute/sync", {"script": text, "args": list(arguments)})

    def open(self, path, place="", whole=True):
        self.post("/url", {"url": "about:blank"})
        self.post("/url", {"url": "file://" + path + "/index.html" + place})
        self.settle(whole)

    def settle(self, whole=True):
        """Waits until answers and tiles are there and drawn. whole: no file of the folder is missing."""
        for _ in range(300):
            if self.script("return !wanted && view.answers.every((a) => a.items) && "
                           "[...tiles.values()].every((t) => t.complete)"):
                break
            time.sleep(0.05)
        else:
            raise AssertionError("the page is not complete: " + str(self.errors()))
        errors = self.errors()
        assert errors == [] or not whole, errors

    def errors(self):
        return [line for line in self.post("/se/log", {"type": "browser"}) if line["level"] == "SEVERE"]

    def pixel(self, x, y):
        clip = {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}
        data = base64.b64decode(self.devtools("Page.captureScreenshot", format="png", clip=clip)["data"])
        _, _, rows = read_png(data, 4 if data[25] == 6 else 3)
        return tuple(rows[0][:3])

    def point(self, actions, kind="pointer"):
        source = {"type": kind, "id": kind, "actions": actions}
        if kind == "pointer":
            source["parameters"] = {"pointerType": "mouse"}
        self.post("/actions", {"actions": [source]})
        self.settle()

    def move(self, x, y):
        self.point([{"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": "viewport"}])

    def drag(self, x, y, by_x, by_y):
        self.point([{"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": "viewport"},
                    {"type": "pointerDown", "button": 0},
                    {"type": "pointerMove", "duration": 50, "x": x + by_x, "y": y + by_y, "origin": "viewport"},
                    {"type": "pointerUp", "button": 0}])

    def wheel(self, x, y, turn):
        self.point([{"type": "scroll", "duration": 0, "x": x, "y": y, "deltaX": 0, "deltaY": turn,
                     "origin": "viewport"}], "wheel")

    def click(self, name):
        self.script("document.getElementById(arguments[0]).click()", name)
        self.settle()

    def text(self, name):
        return self.script("return document.getElementById(arguments[0]).textContent", name)

    def place(self):
        """Column and row below the pointer, and the zoom."""
        found = re.match(r"column (-?\d+), row (-?\d+).*, ([\d.]+) %$", self.text("place"))
        return int(found[1]), int(found[2]), float(found[3]) / 100


def run(*arguments):
    done = subprocess.run([rfexec, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)


def colour_at(x, y):
    """Every block of the image has a colour of its own, far from its neighbours'."""
    return (x // BLOCK * 37 % 256, y // BLOCK * 53 % 256, (x // BLOCK + y // BLOCK) * 71 % 256)


def near(got, want, most=2):
    return all(abs(a - b) <= most for a, b in zip(got, want))


def check_image(browser):
    """All of the image, and zooming with the wheel: what is below the pointer stays there."""
    browser.open(os.path.join(work, "seen"))
    assert browser.text("title") == "in.png"
    for name in ("show_map", "show_regions", "show_points"):
        browser.click(name)
    zoom = min(WIDE / W, HIGH / H)
    sx, sy = 570, 330
    browser.move(sx, sy)
    column, row, shown = browser.place()
    assert abs(shown - zoom) < 0.001 * zoom, (shown, zoom)
    assert column == int((sx - WIDE / 2) / zoom + W / 2) and row == int((sy - HIGH / 2) / zoom + H / 2)
    for turn in (-1000, -1000, -1500, 1200, 3300, -2000):
        before = browser.place()
        browser.wheel(sx, sy, turn)
        column, row, shown = browser.place()
        assert abs(column - before[0]) <= 1 and abs(row - before[1]) <= 1, (before, column, row)
        most = max(64 / before[2], 1.0) if turn < 0 else 1.0
        assert abs(shown / before[2] - min(2 ** (-turn / 400), most)) < 0.02 * most or turn > 0, (before, shown)
        assert shown < before[2] or turn < 0
    # One pixel of the screen for one of the image, dragged: the pixels themselves.
    browser.open(os.path.join(work, "seen"), "#700,500,1")
    for name in ("show_map", "show_regions", "show_points"):
        browser.click(name)
    for x, y in ((450, 300), (600, 350), (890, 590), (454, 300), (455, 300), (484, 309), (485, 310)):
        assert browser.pixel(x, y) == colour_at(700 + x - WIDE // 2, 500 + y - HIGH // 2), (x, y)
    browser.drag(600, 300, -150, 90)
    for x, y in ((450, 300), (620, 420)):
        assert browser.pixel(x, y) == colour_at(850 + x - WIDE // 2, 410 + y - HIGH // 2), (x, y)
    time.sleep(0.5)
    assert browser.script("return location.hash") == "#850.00,410.00,1.000"
    browser.click("all")
    assert browser.text("place").endswith("%") and abs(browser.place()[2] - zoom) < 0.001 * zoom
    # Zoomed in, a pixel is a square; zoomed out, the middle of blocks is their colour at every level.
    browser.open(os.path.join(work, "seen"), "#719.5,500.5,16")
    for name in ("show_map", "show_regions", "show_points"):
        browser.click(name)
    assert browser.pixel(450 + 7, 300) == colour_at(719, 500) != colour_at(720, 500) == browser.pixel(450 + 9, 300)
    for zoom in (4, 2, 0.7, 0.5, 0.3):
        browser.script("location.hash = arguments[0]", "#712.5,517.5,%g" % zoom)
        browser.settle()
        assert near(browser.pixel(450, 300), colour_at(712, 517), 3), (zoom, browser.pixel(450, 300))
    # Where a tile is not there yet, its part of a larger one is drawn.
    shutil.copytree("seen", "torn")
    shutil.rmtree("torn/image_files/11")
    browser.open(os.path.join(work, "torn"), "#712.5,517.5,1", whole=False)
    for name in ("show_map", "show_regions", "show_points"):
        browser.script("document.getElementById(arguments[0]).click()", name)
    browser.settle(whole=False)
    for x, y in ((450, 300), (525, 360), (840, 540)):
        assert near(browser.pixel(x, y), colour_at(712 + x - WIDE // 2, 517 + y - HIGH // 2), 3), (x, y)


def of_hex(text):
    return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))


COLOURS = [of_hex(c) for c in ("#e69f00", "#56b4e9", "#009e73")]


def check_answers(browser, folder, place):
    """The middle of an edge of a region, and a point, are where they are drawn; place: from the file's
    coordinates to pixels. Layers can be switched off, and the pointer shows what is below it."""
    with open("regions.geojson", encoding="utf-8") as file:
        regions = [f for f in json.load(file)["features"] if f["geometry"]["type"] == "Polygon"]
    regions = sorted(regions, key=lambda f: -f["properties"]["area"])[:3]
    for region in regions:
        a, b = (place(p) for p in region["geometry"]["coordinates"][0][:2])
        middle = [(u + v) / 2 for u, v in zip(a, b)]
        browser.open(os.path.join(work, folder), "#%.3f,%.3f,8" % tuple(middle))
        want = COLOURS[region["properties"]["label"]]
        assert near(browser.pixel(450, 300), want), (middle, browser.pixel(450, 300), want)
        browser.click("show_regions")
        assert not near(browser.pixel(450, 300), want, 20)
    if os.path.exists(os.path.join(folder, "points.js")):
        with open("points.geojson", encoding="utf-8") as file:
            one = json.load(file)["features"][0]
        x, y = place(one["geometry"]["coordinates"])
        browser.open(os.path.join(work, folder), "#%.3f,%.3f,8" % (x, y))
        browser.click("show_regions")
        want = COLOURS[one["properties"]["label"]]
        assert near(browser.pixel(455, 300), want, 24), (x, y, browser.pixel(455, 300), want)
        browser.move(452, 301)
        assert re.match(r"class \d 0\.\d+$", browser.text("item")), browser.text("item")
        browser.move(700, 500)
        assert browser.text("item") == ""


def check_map(browser):
    """The output's colours mix with the image as the overlay does, with more or less opacity."""
    run("run", model, "in.png", "--overlay-of", "labels", "--viewer", "labels", "--overlay", "overlay.png")
    with open("overlay.png", "rb") as file:
        _, _, rows = read_png(file.read())
    browser.open(os.path.join(work, "labels"), "#700,500,1")
    tinted = 0
    for x, y in ((450, 300), (500, 350), (560, 480), (700, 200), (650, 90), (400, 520)):
        at, row = 700 + x - WIDE // 2, rows[500 + y - HIGH // 2]
        want = tuple(row[3 * at : 3 * at + 3])
        assert near(browser.pixel(x, y), want), (x, y, browser.pixel(x, y), want)
        tinted += not near(want, colour_at(at, 500 + y - HIGH // 2), 8)
    assert tinted > 0
    browser.click("show_map")
    for x, y in ((450, 300), (500, 350), (560, 480), (700, 200), (650, 90), (400, 520)):
        assert browser.pixel(x, y) == colour_at(700 + x - WIDE // 2, 500 + y - HIGH // 2), (x, y)
    browser.click("show_map")
    assert browser.pixel(450, 300) != colour_at(700, 500)
    browser.script("const r = document.querySelectorAll('input[type=range]')[1]; r.value = 0; r.oninput()")
    browser.settle()
    assert browser.pixel(450, 300) == colour_at(700, 500)


def geotiff(path, w, h):
    """A grey GeoTIFF of pixels of 2 metres."""
    data = bytes((x // 30 * 37 + y // 30 * 53) % 256 for y in range(h) for x in range(w))
    write_geotiff(path, w, h, data, (2, 2), (500000, 5200000), METRES)


def main():
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        print("viewer_page: skipped, needs chromium and chromium-driver")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.chdir(work)
    write_png("in.png", W, H, [[c for x in range(W) for c in colour_at(x, y)] for y in range(H)])
    answers = ("--threshold", "0.2", "--regions", "regions.geojson", "--points", "points.geojson")
    run("run", model, "in.png", *answers, "--memory", "64MiB", "--viewer", "seen")
    browser = Browser(driver, chromium)
    try:
        check_image(browser)
        check_answers(browser, "seen", lambda p: p)
        check_map(browser)
        geotiff("scene.tif", 700, 600)
        run("run", model, "scene.tif", *answers, "--viewer", "scene")
        check_answers(browser, "scene", lambda p: ((p[0] - 500000) / 2, (5200000 - p[1]) / 2))
        browser.open(os.path.join(work, "scene"), "#100,50,1")
        assert browser.text("length") == "200 m" and "(500200, 5199900)" in browser.text("place")
        assert browser.script("return document.getElementById('bar').style.width") == "100px"
    finally:
        browser.close()
    print("viewer_page: image, levels, answers, map and places are on the screen")
    return 0


sys.exit(main())
