# SPDX-License-Identifier: Apache-2.0
"""The outside of an .spz file: header, extension records and the packed streams of each version.

Versions 1 to 3 are one gzip stream of a 16-byte header and six arrays. Version 4 has a plain
32-byte header, extension records, a table of sizes and one zstd stream per array.
"""

import gzip
import struct
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from diorama.errors import UserError
from diorama.splats.disk import check_inflation

MAGIC = 0x5053474E
STREAMS = ("positions", "alphas", "colors", "scales", "rotations", "sh")
_HEADER = struct.Struct("<IIIBBBB")
_HEADER_4 = struct.Struct("<IIIBBBBI12x")
_FLAG_ANTIALIASED = 1
_FLAG_EXTENSIONS = 2
_COORDINATES = 0xADBE0003
_ZSTD_LEVEL = 12
_MAX_EXTENSIONS = 2**20
_PIECE = 2**24


@dataclass(frozen=True)
class SpzFile:
    """What the header says, and the arrays as bytes by the names of `STREAMS`."""

    version: int
    count: int
    degree: int
    fractional_bits: int
    is_antialiased: bool
    streams: dict[str, bytes]
    axes: int | None = None
    """The code of the frame, where Adobe's record names one."""

    def sizes(self) -> dict[str, int]:
        """How many bytes each array must have."""
        per_splat = (
            6 if self.version == 1 else 9,
            *(1, 3, 3),
            4 if self.version >= 3 else 3,
            3 * ((self.degree + 1) ** 2 - 1),
        )
        return {name: self.count * size for name, size in zip(STREAMS, per_splat, strict=True)}


def read_spz(raw: bytes, path: Path) -> SpzFile:
    """The unpacked file; each size is checked against the header before it is unpacked."""
    if raw[:2] == b"\x1f\x8b":
        return _read_gzip(raw, path)
    if len(raw) < _HEADER_4.size or raw[:4] != b"NGSP":
        raise UserError(f"{path}: not an .spz file (it begins neither as gzip nor with NGSP).")
    return _read_zstd(raw, path)


def write_spz(file: SpzFile) -> bytes:
    """The file as bytes, as its version has it."""
    flags = _FLAG_ANTIALIASED if file.is_antialiased else 0
    fields = (MAGIC, file.version, file.count, file.degree, file.fractional_bits, flags)
    streams = [file.streams[name] for name in STREAMS if file.streams[name]]
    if file.version < 4:
        return gzip.compress(_HEADER.pack(*fields, 0) + b"".join(streams), mtime=0)
    import zstandard

    packed = [zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(data) for data in streams]
    table = [struct.pack("<QQ", len(p), len(s)) for p, s in zip(packed, streams, strict=True)]
    return b"".join([_HEADER_4.pack(*fields, len(streams), _HEADER_4.size), *table, *packed])


def _checked(fields: tuple[int, ...], present: int, path: Path) -> SpzFile:
    magic, version, count, degree, fractional_bits, flags = fields[:6]
    if magic != MAGIC:
        raise UserError(f"{path}: not an .spz file (its header does not begin with NGSP).")
    if not 1 <= version <= 4:
        raise UserError(f"{path}: .spz version {version}; versions 1 to 4 are read.")
    if degree > 4 or fractional_bits > 23:
        raise UserError(
            f"{path}: the .spz header asks for SH degree {degree} and {fractional_bits} fractional"
            " bits; it is damaged, so copy or export it again."
        )
    is_antialiased = bool(flags & _FLAG_ANTIALIASED)
    file = SpzFile(version, count, degree, fractional_bits, is_antialiased, {})
    check_inflation(path, sum(file.sizes().values()), present)
    return file


def _read_gzip(raw: bytes, path: Path) -> SpzFile:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        header = unpacker.decompress(raw, _HEADER.size)
        if len(header) < _HEADER.size:
            raise _cut_off(path)
        fields = _HEADER.unpack(header)
        file = _checked(fields, len(raw), path)
        if file.version == 4:
            raise UserError(f"{path}: .spz version 4 is not packed with gzip; export it again.")
        needed = sum(file.sizes().values())
        body = unpacker.decompress(unpacker.unconsumed_tail, needed + _MAX_EXTENSIONS)
    except zlib.error as error:
        raise UserError(f"{path}: damaged gzip data ({error}); copy it again.") from error
    if len(body) < needed or not (unpacker.eof or unpacker.unconsumed_tail):
        raise _cut_off(path)
    if not unpacker.eof:
        raise UserError(f"{path}: holds much more than its {file.count} splats; export it again.")
    streams, offset = {}, 0
    for name, size in file.sizes().items():
        streams[name] = body[offset : offset + size]
        offset += size
    axes = _axes(body[offset:], path) if fields[5] & _FLAG_EXTENSIONS else None
    return replace(file, streams=streams, axes=axes)


def _read_zstd(raw: bytes, path: Path) -> SpzFile:
    *fields, num_streams, toc = _HEADER_4.unpack_from(raw)
    file = _checked(tuple(fields), len(raw), path)
    sizes = {name: size for name, size in file.sizes().items() if size}
    if file.version != 4 or num_streams != len(sizes) or toc < _HEADER_4.size:
        raise UserError(
            f"{path}: the .spz header (version {file.version}, {num_streams} streams, table at"
            f" {toc}) contradicts itself; copy or export it again."
        )
    offset = toc + 16 * num_streams
    if offset > len(raw):
        raise _cut_off(path)
    streams: dict[str, bytes] = dict.fromkeys(STREAMS, b"")
    for index, (name, size) in enumerate(sizes.items()):
        packed_size, raw_size = struct.unpack_from("<QQ", raw, toc + 16 * index)
        if raw_size != size:
            raise UserError(
                f"{path}: {name} of {file.count} splats take {size} bytes, the file says"
                f" {raw_size}; copy or export it again."
            )
        if packed_size > len(raw) - offset:
            raise _cut_off(path)
        streams[name] = _unzstd(raw[offset : offset + packed_size], size, name, path)
        offset += packed_size
    axes = _axes(raw[_HEADER_4.size : toc], path) if fields[5] & _FLAG_EXTENSIONS else None
    return replace(file, streams=streams, axes=axes)


def _unzstd(packed: bytes, size: int, name: str, path: Path) -> bytes:
    """Unpack in pieces, so that memory follows what is really there."""
    import zstandard

    pieces, length = [], 0
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            while length <= size and (piece := reader.read(min(_PIECE, size + 1 - length))):
                pieces.append(piece)
                length += len(piece)
    except zstandard.ZstdError as error:
        raise UserError(f"{path}: damaged zstd data in {name} ({error}); copy it again.") from error
    if length != size:
        raise UserError(
            f"{path}: {name} do not unpack to the {size} bytes that the header promises; the file"
            " is cut off or damaged, so copy it again."
        )
    return b"".join(pieces)


def _axes(records: bytes, path: Path) -> int | None:
    """Adobe's code of the file's axes, if there is one; other extension records are skipped."""
    offset, axes = 0, None
    while offset + 8 <= len(records):
        kind, length = struct.unpack_from("<II", records, offset)
        offset += 8
        if length > len(records) - offset:
            raise UserError(f"{path}: an .spz extension record is cut off; copy it again.")
        if kind == _COORDINATES and length == 4:
            (axes,) = struct.unpack_from("<I", records, offset)
        offset += length
    return axes


def _cut_off(path: Path) -> UserError:
    return UserError(f"{path}: the .spz file is cut off; copy or export it again.")
