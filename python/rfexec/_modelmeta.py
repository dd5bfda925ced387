"""Metadata of an .onnx file, read without its nodes and weights."""

from __future__ import annotations

import mmap
import os
from typing import Any, Iterator, Union

# Fields of ONNX's ModelProto, GraphProto and StringStringEntryProto.
_PRODUCER, _DOMAIN, _VERSION, _DOC, _GRAPH, _METADATA = 2, 4, 5, 6, 7, 14
_GRAPH_NAME, _GRAPH_DOC = 2, 10


class ModelMetadata:
    """As onnxruntime.ModelMetadata."""

    def __init__(self) -> None:
        self.producer_name = ""
        self.graph_name = ""
        self.domain = ""
        self.description = ""
        self.graph_description = ""
        self.version = 2**63 - 1  # the default of ONNX Runtime for files without a version
        self.custom_metadata_map: dict[str, str] = {}


def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128 or shift > 63:
            return value, at
        shift += 7


def _fields(data: Any, at: int, end: int) -> Iterator[tuple[int, Any]]:
    """Yields field numbers of a message, each with its number or with the first and end byte of its data."""
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind == 2:
            size, at = _varint(data, at)
            yield key >> 3, (at, min(at + size, end))
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return


def _text(data: Any, span: tuple[int, int]) -> str:
    return bytes(data[span[0] : span[1]]).decode("utf-8", "replace")


def _entry(data: Any, span: tuple[int, int]) -> tuple[str, str]:
    parts = dict(_fields(data, *span))
    return tuple(_text(data, parts.get(k, (0, 0))) for k in (1, 2))  # type: ignore[return-value]


def _read(data: Any, size: int) -> ModelMetadata:
    meta = ModelMetadata()
    for number, value in _fields(data, 0, size):
        if number == _PRODUCER:
            meta.producer_name = _text(data, value)
        elif number == _DOMAIN:
            meta.domain = _text(data, value)
        elif number == _VERSION:
            meta.version = value - 2**64 if value >= 2**63 else value
        elif number == _DOC:
            meta.description = _text(data, value)
        elif number == _METADATA:
            key, text = _entry(data, value)
            meta.custom_metadata_map[key] = text
        elif number == _GRAPH:
            for inner, span in _fields(data, *value):
                if inner == _GRAPH_NAME:
                    meta.graph_name = _text(data, span)
                elif inner == _GRAPH_DOC:
                    meta.graph_description = _text(data, span)
    return meta


def model_metadata(model: Union[str, os.PathLike[str], Any]) -> ModelMetadata:
    """Metadata of a path or of bytes; of a built-in network the name only."""
    if not isinstance(model, (str, os.PathLike)):
        data = memoryview(model)
        return _read(data, data.nbytes)
    meta = ModelMetadata()
    if not os.path.isfile(model):
        meta.producer_name, meta.graph_name = "rfexec", os.fspath(model)
        return meta
    with open(model, "rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return _read(mapped, len(mapped))
