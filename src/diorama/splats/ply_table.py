# SPDX-License-Identifier: Apache-2.0
"""The tables of a PLY file, binary or ASCII, without knowing what they mean."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from diorama.errors import UserError

MAX_HEADER = 64 * 2**10
_KINDS = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip
_ORDERS = {"ascii": "<", "binary_little_endian": "<", "binary_big_endian": ">"}


@dataclass
class _Element:
    """One table of the header; `kinds` maps its columns to NumPy types, None for lists."""

    name: str
    count: int
    kinds: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class PlyTables:
    """The header's comments, and each element as a structured array."""

    comments: tuple[str, ...]
    elements: dict[str, np.ndarray]


def read_ply_tables(raw: bytes, path: Path) -> PlyTables:
    """All tables up to the first with lists in it (faces); tables after that are not looked at.

    Every count is compared with the bytes that are there before anything is allocated.
    """
    end = raw.find(b"end_header", 0, MAX_HEADER)
    start = raw.find(b"\n", end) + 1
    if not raw.startswith(b"ply") or end < 0 or not start:
        raise UserError(f"{path}: not a PLY file (no header); is it another format by this name?")
    style, comments, declared = _header(raw[:end].decode("latin-1"), path)
    body = memoryview(raw)[start:]
    read = _ascii_tables if style == "ascii" else _binary_tables
    flat = []
    for element in declared:
        if None in element.kinds.values():
            break
        flat.append(element)
    return PlyTables(tuple(comments), read(body, flat, _ORDERS[style], path))


def _header(text: str, path: Path) -> tuple[str, list[str], list[_Element]]:
    style, comments, elements = "", [], []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["format"] and len(words) == 3:
            style = words[1]
        elif words[:1] in (["comment"], ["obj_info"]):
            comments.append(line.split(maxsplit=1)[1] if len(words) > 1 else "")
        elif words[:1] == ["element"]:
            if len(words) != 3 or not words[2].isdecimal() or len(words[2]) > 15:
                raise UserError(f"{path}: cannot read the PLY header line {line!r:.60}.")
            elements.append(_Element(words[1], int(words[2])))
        elif words[:1] == ["property"] and elements:
            _add_property(elements[-1], words, path)
    if style not in _ORDERS:
        raise UserError(f"{path}: the PLY format {style!r:.40} is none of {', '.join(_ORDERS)}.")
    return style, comments, elements


def _add_property(element: _Element, words: list[str], path: Path) -> None:
    is_list = len(words) == 5 and words[1] == "list"
    if words[-1] in element.kinds or not (is_list or (len(words) == 3 and words[1] in _KINDS)):
        raise UserError(f"{path}: cannot read the PLY header line {' '.join(words)!r:.60}.")
    element.kinds[words[-1]] = None if is_list else _KINDS[words[1]]


def _too_short(path: Path, element: _Element) -> UserError:
    return UserError(
        f"{path}: declares {element.count} rows of {element.name} but the file is too short for"
        " them; copy or export it again."
    )


def _binary_tables(
    body: memoryview, elements: list[_Element], order: str, path: Path
) -> dict[str, np.ndarray]:
    tables, offset = {}, 0
    for element in elements:
        row = np.dtype([(name, f"{order}{kind}") for name, kind in element.kinds.items()])
        if element.count * row.itemsize > len(body) - offset:
            raise _too_short(path, element)
        tables[element.name] = np.frombuffer(body, row, element.count, offset)
        offset += element.count * row.itemsize
    return tables


def _ascii_tables(
    body: memoryview, elements: list[_Element], order: str, path: Path
) -> dict[str, np.ndarray]:
    words, tables, offset = bytes(body).split(), {}, 0
    for element in elements:
        width = len(element.kinds)
        size = element.count * width
        if size > len(words) - offset:
            raise _too_short(path, element)
        try:
            values = np.array(words[offset : offset + size], dtype=bytes).astype(np.float64)
        except ValueError as error:
            raise UserError(
                f"{path}: a row of {element.name} is not {width} numbers; export it again."
            ) from error
        row = np.dtype([(name, f"{order}{kind}") for name, kind in element.kinds.items()])
        table = np.zeros(element.count, row)
        for column, name in zip(values.reshape(-1, width).T, element.kinds, strict=True):
            table[name] = column
        tables[element.name] = table
        offset += size
    return tables


def ply_header(comments: list[str], elements: dict[str, np.ndarray]) -> bytes:
    """The header of a little-endian file that holds these tables, in this order."""
    names = {"f4": "float", "u4": "uint", "u1": "uchar"}
    lines = ["ply", "format binary_little_endian 1.0", *(f"comment {text}" for text in comments)]
    for element, table in elements.items():
        lines.append(f"element {element} {len(table)}")
        kinds = [(name, table.dtype[name].str[1:]) for name in table.dtype.names or ()]
        lines += [f"property {names[kind]} {name}" for name, kind in kinds]
    return "\n".join([*lines, "end_header", ""]).encode("ascii")
