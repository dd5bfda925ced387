"""GeoTIFF files of grey pixels, written with Python alone."""
import struct

# Coordinate systems as the tag of geo keys: UTM zone 32 north, and longitude and latitude.
METRES = [1, 1, 0, 3, 1024, 0, 1, 1, 3072, 0, 1, 32632, 3076, 0, 1, 9001]
DEGREES = [1, 1, 0, 2, 1024, 0, 1, 2, 2048, 0, 1, 4326]


def write_geotiff(path, w, h, data, side, corner, keys):
    """Writes w * h bytes. side: width and height of a pixel; corner: x and y of the upper left one."""
    tags = [(256, "I", [w]), (257, "I", [h]), (258, "H", [8]), (259, "H", [1]), (262, "H", [1]), (273, "I", [8]),
            (277, "H", [1]), (278, "I", [h]), (279, "I", [w * h]), (33550, "d", [*side, 0]),
            (33922, "d", [0, 0, 0, *corner, 0]), (34735, "H", keys)]
    data += b"\0" * (len(data) % 2)
    entries, more, at = b"", b"", 8 + len(data)
    after = at + 2 + 12 * len(tags) + 4
    for tag, kind, values in tags:
        body = struct.pack("<%d%s" % (len(values), kind), *values)
        if len(body) > 4:
            more += body
            body = struct.pack("<I", after + len(more) - len(body))
        entries += struct.pack("<HHI", tag, {"H": 3, "I": 4, "d": 12}[kind], len(values)) + body.ljust(4, b"\0")
    with open(path, "wb") as file:
        file.write(struct.pack("<2sHI", b"II", 42, at) + data + struct.pack("<H", len(tags)) + entries)
        file.write(bytes(4) + more)
