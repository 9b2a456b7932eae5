# SPDX-License-Identifier: Apache-2.0
"""The outside of glTF files: JSON, buffers from .glb, base64 or the same folder, and accessors."""

import base64
import binascii
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from diorama.errors import UserError
from diorama.splats.disk import read_file

GLB_MAGIC = b"glTF"
JSON_CHUNK, BINARY_CHUNK = 0x4E4F534A, 0x004E4942
_MAX_JSON = 64 * 2**20
_KINDS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}


@dataclass(frozen=True)
class Gltf:
    """A parsed file; nothing in `data` has been checked but that it is a JSON object."""

    path: Path
    data: dict[str, Any]
    binary: bytes
    """The second chunk of a .glb."""

    buffers: dict[int, bytes] = field(default_factory=dict)
    """Those that have been read, by index."""

    def refuse(self, what: str) -> UserError:
        """The sentence for a file that breaks the rules of glTF."""
        return UserError(f"{self.path}: {what}; export it again.")

    def item(self, table: str, index: Any) -> dict[str, Any]:
        """The object that an index refers to."""
        items = self.data.get(table)
        if not isinstance(items, list) or not _is_count(index) or index >= len(items):
            raise self.refuse(f"{table}[{index!r:.20}] does not exist")
        if not isinstance(items[index], dict):
            raise self.refuse(f"{table}[{index}] is not an object")
        return items[index]

    def count(self, owner: dict[str, Any], key: str, default: int | None = None) -> int:
        """A whole number of at least 0."""
        value = owner.get(key, default)
        if not _is_count(value):
            raise self.refuse(f"{key} must be a whole number, got {value!r:.20}")
        return value

    def accessor(self, index: Any, name: str, width: int) -> np.ndarray:
        """The numbers of an attribute (N width), in 0 to 1 or -1 to 1 where they are normalised."""
        accessor = self.item("accessors", index)
        kind = _KINDS.get(self.count(accessor, "componentType"))
        count = self.count(accessor, "count")
        if kind is None or _WIDTHS.get(str(accessor.get("type"))) != width:
            raise self.refuse(f"the attribute {name} does not have {width} numbers of a known type")
        if "sparse" in accessor or "bufferView" not in accessor:
            raise self.refuse(f"the attribute {name} is sparse, which is not read")
        view = self.item("bufferViews", accessor["bufferView"])
        row = np.dtype(kind).itemsize * width
        stride = self.count(view, "byteStride", row)
        start, length = self.count(view, "byteOffset", 0), self.count(view, "byteLength")
        offset = self.count(accessor, "byteOffset", 0)
        data = self._buffer(view.get("buffer"))
        needed = offset + stride * (count - 1) + row if count else 0
        if stride < row or needed > length or start + length > len(data):
            raise self.refuse(f"the attribute {name} reaches beyond its data")
        values = np.ndarray(
            (count, width), kind, data, start + offset, (stride, np.dtype(kind).itemsize)
        )
        if accessor.get("normalized") and kind != "<f4":
            top = np.iinfo(values.dtype).max
            return np.maximum(values / top, -1)
        return values.astype(np.float32)

    def num_bytes(self) -> int:
        """The size of all buffers that were read so far."""
        return sum(map(len, self.buffers.values()))

    def _buffer(self, index: Any) -> bytes:
        buffer = self.item("buffers", index)
        if index not in self.buffers:
            self.buffers[index] = self._read_buffer(buffer, index)
        return self.buffers[index]

    def _read_buffer(self, buffer: dict[str, Any], index: int) -> bytes:
        uri = buffer.get("uri")
        if uri is None:
            data = self.binary if index == 0 else b""
        elif not isinstance(uri, str):
            raise self.refuse(f"buffers[{index}].uri is not a text")
        elif uri.startswith("data:"):
            data = self._embedded(uri)
        else:
            data = read_file(self._beside(unquote(uri)))
        if self.count(buffer, "byteLength") > len(data):
            raise self.refuse(f"buffers[{index}] is shorter than it says")
        return data

    def _embedded(self, uri: str) -> bytes:
        head, _, body = uri.partition(",")
        if not head.endswith(";base64"):
            raise self.refuse("a data: URI is not base64")
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.refuse("a data: URI is not valid base64") from error

    def _beside(self, name: str) -> Path:
        """A buffer's file, which must lie in the same folder."""
        target = self.path.parent / name
        is_plain = name not in ("", ".", "..") and not set("/\\:\0") & set(name)
        if not is_plain or target.resolve().parent != self.path.parent.resolve():
            raise UserError(
                f"{self.path}: the buffer {name!r:.60} is not a file beside it; put it there, or"
                " export a .glb."
            )
        return target


def parse_gltf(raw: bytes, path: Path) -> Gltf:
    """A .glb or .gltf file, told apart by its first bytes."""
    text, binary = _chunks(raw, path) if raw[:4] == GLB_MAGIC else (raw, b"")
    if len(text) > _MAX_JSON and raw[:4] == GLB_MAGIC:
        raise UserError(f"{path}: {len(text)} bytes of JSON are more than are read.")
    try:
        data = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid glTF JSON ({error!s:.60}); export it again.") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: not a glTF file (its JSON is not an object).")
    return Gltf(path, data, binary)


def _chunks(raw: bytes, path: Path) -> tuple[bytes, bytes]:
    """The JSON and binary chunks of a .glb file."""
    found: dict[int, bytes] = {}
    version, length = struct.unpack("<II", raw[4:12].ljust(8, b"\0"))
    if version != 2:
        raise UserError(f"{path}: glTF binary version {version}; version 2 is read.")
    offset = 12
    while offset + 8 <= min(length, len(raw)):
        size, kind = struct.unpack_from("<II", raw, offset)
        found.setdefault(kind, raw[offset + 8 : offset + 8 + size])
        offset += 8 + size
    if length > len(raw) or offset > len(raw) or JSON_CHUNK not in found:
        raise UserError(f"{path}: the .glb file is cut off; copy or export it again.")
    return found[JSON_CHUNK], found.get(BINARY_CHUNK, b"")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
