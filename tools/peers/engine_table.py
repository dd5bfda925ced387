"""The tables of docs/benchmarks.md: network, size, and per row of rfexec the budget, the options and
the targets: at most so many times the fastest of a group of peers (measure.GROUPS)."""

from peers.measure import COMPARED, Row

WINOGRAD = ["--conv", "winograd"]


def _row(budget, limit, group="all"):
    return Row(budget, [], [(limit, group)])


def _winograd(budget, *targets):
    return Row(budget, WINOGRAD, targets)


def engine():
    both = (0.55, "plain"), (0.85, "winograd")
    return [
        ("mobilenet_v2", "1024x1024", [_row("64MiB", 0.80)]),
        ("mobilenet_v2", "2048x2048", [_row("64MiB", 0.75)]),
        ("mobilenet_v2", "4096x4096", [_row("64MiB", 0.70)]),
        ("resnet50", "1024x1024", [_row("200MiB", 1.00), _winograd("256MiB", (0.80, "all"))]),
        ("resnet50", "2048x2048", [_row("200MiB", 0.95), _winograd("320MiB", (0.76, "all"))]),
        ("resnet18", "1024x1024", [_row("200MiB", 0.95, "plain"), _winograd("untiled", *both)]),
        ("vgg16", "1024x1024", [_row("700MiB", 0.95, "plain"), _winograd("untiled", *both)]),
        # The bound on unet's winograd names no budget: both its runs are held to it.
        ("unet", "1024x1024", [_row("256MiB", 0.90, "plain"),
                               _winograd("256MiB", (0.60, "plain")),
                               _winograd("untiled", (0.60, "plain"))]),
    ]


def int8():
    """Networks of 8 bits."""
    def rows(budget, limit):
        return [_row("untiled", limit, "plain"), _row(budget, limit, "plain")]
    return [
        ("mobilenet_v2:int8", "1024x1024", rows("24MiB", 0.75)),
        ("mobilenet_v2:int8", "2048x2048", rows("32MiB", 0.70)),
        ("mobilenet_v2:int8", "4096x4096", rows("32MiB", 0.65)),
        ("resnet50:int8", "1024x1024", rows("80MiB", 0.95)),
        ("resnet50:int8", "2048x2048", rows("96MiB", 0.92)),
        ("resnet18:int8", "1024x1024", rows("67MiB", 0.95)),
        ("unet:int8", "1024x1024", rows("85MiB", 0.95)),
        ("deeplab_v3:int8", "1024x1024", rows("40MiB", 0.95)),
    ]


TABLES = {"engine": engine, "int8": int8}


def default_peers(table):
    """LiteRT takes part only where networks of 8 bits are compared."""
    return [*COMPARED, "litert"] if table == "int8" else list(COMPARED)
