"""ONNX files written without any library: fields of protocol buffers, nodes, constants, models."""

import struct

FLOAT, INT64 = 1, 7


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    """A field of a protocol buffer: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    """An attribute of a node: an int, a float, a text or a list of ints."""
    head = field(1, name.encode())
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, int):
        return head + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return head + field(4, value.encode()) + field(20, 3)
    return head + b"".join(field(8, number) for number in value) + field(20, 7)


def node(op, inputs, outputs, **attributes):
    outputs = [outputs] if isinstance(outputs, str) else outputs
    return b"".join(field(1, name.encode()) for name in inputs) + \
        b"".join(field(2, name.encode()) for name in outputs) + field(3, outputs[0].encode()) + \
        field(4, op.encode()) + b"".join(field(5, attribute(*item)) for item in attributes.items())


def constant(name, kind, dims, data):
    """A constant of an element type such as FLOAT or INT64, from its bytes."""
    return b"".join(field(1, dim) for dim in dims) + field(2, kind) + field(8, name.encode()) + field(9, data)


def value(name, *dims):
    """A float tensor that goes in or comes out; without dims its shape is left open."""
    shape = b"".join(field(1, field(1, dim)) for dim in dims)
    return field(1, name.encode()) + field(2, field(1, field(1, 1) + field(2, shape)))


def open_value(name, kind, *dims):
    """A tensor of this element type; a dimension is a number, or the name of one that is open."""
    shape = b"".join(field(1, field(1, dim) if isinstance(dim, int) else field(2, dim.encode())) for dim in dims)
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + (field(2, shape) if dims else b"")))


def write_model(path, nodes, outputs, constants=(), shape=(1, 3, 64, 64), opset=13):
    """A file with the input x of that shape."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, b"large") + \
        b"".join(field(5, c) for c in constants) + field(11, value("x", *shape)) + \
        b"".join(field(12, value(name)) for name in outputs)
    with open(path, "wb") as file:
        file.write(field(1, 8) + field(7, graph) + field(8, field(2, opset)))
