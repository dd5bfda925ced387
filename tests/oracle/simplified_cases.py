"""Simplified polygons of regions against the exact ones, by shapely.

compare() returns differences between two files of one label map, as words:
- features have the same properties in the same order, and as many polygons and rings;
- geometries are valid: rings cross neither themselves nor each other, holes lie inside;
- no ring is farther than the tolerance from the exact one, in either direction;
- if the regions cover the map (all labels, none left out), the polygons cover it without gap and overlap, and
  neighbours have the same points along their common edge (shapely.coverage_is_valid).
"""

import shapely
import shapely.geometry


def polygons_of(geometry):
    shape = shapely.geometry.shape(geometry)
    return list(shape.geoms) if shape.geom_type == "MultiPolygon" else [shape]


def rings_of(polygon):
    return [polygon.exterior, *polygon.interiors]


def is_near(ring, other, tolerance):
    """Whether all of a ring is within the tolerance of another. A buffer's arcs have 256 corners."""
    return other.buffer(tolerance * 1.0001 + 1e-6, quad_segs=64).covers(ring)


def ring_faults(exact, simple, tolerance):
    a, b = shapely.LineString(exact.coords), shapely.LineString(simple.coords)
    if not is_near(a, b, tolerance) or not is_near(b, a, tolerance):
        yield f"a ring from {exact.coords[0]} is {a.hausdorff_distance(b)} from the exact one"


def faults(exact, simple, tolerance):
    if exact["properties"] != simple["properties"]:
        yield "other properties"
    before, after = polygons_of(exact["geometry"]), polygons_of(simple["geometry"])
    shape = shapely.geometry.shape(simple["geometry"])
    if not shape.is_valid:
        yield f"not valid: {shapely.is_valid_reason(shape)}"
    if [len(p.interiors) for p in before] != [len(p.interiors) for p in after]:
        yield "other polygons or holes"
        return
    for p, q in zip(before, after):
        for a, b in zip(rings_of(p), rings_of(q)):
            yield from ring_faults(a, b, tolerance)


def compare(exact, simple, tolerance, covered):
    """exact, simple: features; covered: pixels of the map, or None if regions are left out."""
    words = [f"{len(simple)} regions, not {len(exact)}"] if len(exact) != len(simple) else []
    for k, (a, b) in enumerate(zip(exact, simple)):
        words += [f"feature {k}: {fault}" for fault in faults(a, b, tolerance)]
    if covered is not None and not words:
        parts = [p for feature in simple for p in polygons_of(feature["geometry"])]
        area = sum(p.area for p in parts)
        if not shapely.coverage_is_valid(parts):
            edges = [e for e in shapely.coverage_invalid_edges(parts) if not e.is_empty]
            words.append(f"neighbours do not have the same points along their edge: {edges[:2]}")
        if abs(area - covered) > 4:  # lines may cut the four corners of the map
            words.append(f"polygons of {area} pixels, the map has {covered}")
    return words
