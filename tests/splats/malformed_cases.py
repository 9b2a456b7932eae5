# SPDX-License-Identifier: Apache-2.0
"""Damaged splat files: for each a name, the bytes, and words of the sentence they must get."""

import gzip
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import zstandard

from diorama.splats.compressed_ply import encode_compressed_ply
from diorama.splats.gltf import encode_gltf
from diorama.splats.ply import encode_ply
from diorama.splats.ply_table import ply_header, read_ply_tables
from diorama.splats.splat import encode_splat
from diorama.splats.spz import encode_spz
from diorama.splats.taichi_parquet import encode_taichi
from tests.splats.random_splats import random_splats

Case = tuple[str, bytes, str]

PLY = encode_ply(random_splats(300, degree=1))
COMPRESSED = encode_compressed_ply(random_splats(300, degree=1))
SPLAT = encode_splat(random_splats(10, degree=0))
SPZ = encode_spz(random_splats(300, degree=1))
SPZ_2 = encode_spz(random_splats(300, degree=1), version=2)
TAICHI = encode_taichi(random_splats(30, color="sigmoid"))
GLB = encode_gltf(random_splats(30, degree=1))
NAME = "KHR_gaussian_splatting"
HUGE = 10**14


def with_nan_positions() -> bytes:
    table = read_ply_tables(PLY, Path("x")).elements["vertex"].copy()
    table["y"][3:7], table["z"][5] = np.nan, np.inf
    return ply_header([], {"vertex": table}) + table.tobytes()


def without_last_column(raw: bytes, *names: bytes) -> bytes:
    """Only the header says so; the row is then shorter than it was, which nobody notices."""
    for name in names:
        raw = raw.replace(b"property float " + name + b"\n", b"")
    return raw


def spz_header(raw: bytes, **changes: int) -> bytes:
    """The bytes of a version 4 header, changed."""
    places = {"magic": (0, "I"), "version": (4, "I"), "count": (8, "I"), "degree": (12, "B")}
    places |= {"bits": (13, "B"), "flags": (14, "B"), "streams": (15, "B"), "toc": (16, "I")}
    changed = bytearray(raw)
    for name, value in changes.items():
        place, kind = places[name]
        struct.pack_into(f"<{kind}", changed, place, value)
    return bytes(changed)


def spz_bomb() -> bytes:
    """A million times more alphas than the table says, in a few kilobytes."""
    raw = bytearray(encode_spz(random_splats(4, degree=0)))
    sizes = [struct.unpack_from("<QQ", raw, 32 + 16 * index)[0] for index in range(5)]
    start = 32 + 80 + sizes[0]
    bomb = zstandard.ZstdCompressor().compress(bytes(2**22))
    struct.pack_into("<Q", raw, 32 + 16, len(bomb))
    return bytes(raw[:start]) + bomb + bytes(raw[start + sizes[1] :])


def gzip_with(change: Callable[[bytearray], Any]) -> bytes:
    body = bytearray(gzip.decompress(SPZ_2))
    change(body)
    return gzip.compress(bytes(body))


def gltf_with(change: Callable[[dict[str, Any]], Any]) -> bytes:
    data = json.loads(encode_gltf(random_splats(3, degree=1), is_binary=False))
    change(data)
    return json.dumps(data).encode()


def primitive(data: dict[str, Any]) -> dict[str, Any]:
    return data["meshes"][0]["primitives"][0]


def parquet(**columns: object) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


def parquet_with_text() -> bytes:
    table = pyarrow.parquet.read_table(io.BytesIO(TAICHI))
    sink = io.BytesIO()
    texts = pyarrow.array(["a"] * len(table))
    pyarrow.parquet.write_table(table.set_column(10, "alpha0", texts), sink)
    return sink.getvalue()


PLY_CASES: list[Case] = [
    ("empty.ply", b"", "not a PLY file (no header)"),
    ("no-header-end.ply", PLY[:200], "not a PLY file (no header)"),
    ("truncated.ply", PLY[:-1], "declares 300 rows of vertex but the file is too short"),
    ("huge.ply", PLY.replace(b"vertex 300", b"vertex %d" % HUGE), f"declares {HUGE} rows"),
    ("absurd.ply", PLY.replace(b"vertex 300", b"vertex " + b"9" * 30), "cannot read the PLY"),
    ("negative.ply", PLY.replace(b"vertex 300", b"vertex -3"), "cannot read the PLY header line"),
    ("none.ply", PLY.replace(b"vertex 300", b"vertex 0"), "holds no splats"),
    ("nan.ply", with_nan_positions(), "4 of 300 splats have means that are not finite"),
    ("2dgs.ply", without_last_column(PLY, b"scale_2"), "two scales (2DGS), which are not"),
    ("mode.ply", PLY.replace(b"element", b"comment SplatRenderMode: 2dgs\nelement"), "(2DGS)"),
    ("no-opacity.ply", without_last_column(PLY, b"opacity"), "opacity missing"),
    ("bytes.ply", PLY.replace(b"float opacity", b"uchar opacity"), "column opacity holds uint8"),
    ("kind.ply", PLY.replace(b"float opacity", b"half opacity"), "cannot read the PLY header line"),
    ("twice.ply", PLY.replace(b"float nx", b"float x"), "cannot read the PLY header line"),
    ("format.ply", PLY.replace(b"binary_little_endian", b"binary"), "is none of ascii, binary"),
    ("sh.ply", without_last_column(PLY, b"f_rest_8"), "8 columns f_rest_*"),
    ("vertexless.ply", PLY.replace(b"element vertex", b"element splat"), "has no vertices"),
    ("text.ply", PLY[: PLY.index(b"end_header")].replace(b"binary_little_endian", b"ascii")
     + b"end_header\n" + b"one " * 7800, "is not 26 numbers"),
    ("few.ply", PLY[: PLY.index(b"end_header")].replace(b"binary_little_endian", b"ascii")
     + b"end_header\n1 2 3", "too short"),
    ("lists.ply", PLY.replace(b"property float x\n", b"property list uchar int x\n"), "has no"),
]  # fmt: skip

COMPRESSED_CASES: list[Case] = [
    ("c-cut.ply", COMPRESSED[:-5], "rows of sh but the file is too short"),
    ("c-chunks.ply", COMPRESSED.replace(b"chunk 2", b"chunk 1"), "300 splats need 2 chunks"),
    ("c-chunkless.ply", COMPRESSED.replace(b"element chunk", b"element lump"), "tables chunk and"),
    ("c-kind.ply", COMPRESSED.replace(b"uint packed_scale", b"float packed_scale"), "packed_scale"),
    ("c-bound.ply", COMPRESSED.replace(b"float max_b", b"float max_q"), "max_b"),
    ("c-sh.ply", COMPRESSED.replace(b"property uchar f_rest_8\n", b""), "the table sh must hold"),
    ("c-short-sh.ply", COMPRESSED.replace(b"element sh 300", b"element sh 299"), "each of the 300"),
]

SPLAT_CASES: list[Case] = [
    ("cut.splat", SPLAT[:-1], "319 bytes are no multiple of the 32"),
    ("empty.splat", b"", "holds no splats"),
    ("sizes.splat", SPLAT[:12] + struct.pack("<f", -1) + SPLAT[16:], "negative or not finite"),
    ("nan.splat", struct.pack("<f", float("nan")) + SPLAT[4:], "1 of 10 splats have means"),
]

SPZ_CASES: list[Case] = [
    ("empty.spz", b"", "not an .spz file"),
    ("magic.spz", b"NGSQ" + SPZ[4:], "not an .spz file (it begins neither"),
    ("header.spz", SPZ[:20], "not an .spz file"),
    ("version.spz", spz_header(SPZ, version=9), ".spz version 9; versions 1 to 4"),
    ("zero.spz", spz_header(encode_spz(random_splats(1)), count=0, streams=0), "holds no splats"),
    ("degree.spz", spz_header(SPZ, degree=9), "SH degree 9"),
    ("bits.spz", spz_header(SPZ, bits=40), "40 fractional bits"),
    ("streams.spz", spz_header(SPZ, streams=3), "contradicts itself"),
    ("toc.spz", spz_header(SPZ, toc=7), "contradicts itself"),
    ("far-toc.spz", spz_header(SPZ, toc=2**31), "is cut off"),
    ("count.spz", spz_header(SPZ, count=301), "positions of 301 splats take 2709 bytes"),
    ("huge.spz", spz_header(SPZ, count=2**32 - 1), "which no scene does"),
    ("cut.spz", SPZ[:-1], "is cut off"),
    ("damaged.spz", SPZ[:130] + b"\xff" * 9 + SPZ[139:], "damaged zstd data in positions"),
    ("bomb.spz", spz_bomb(), "alphas do not unpack to the 4 bytes"),
    ("record.spz", spz_header(SPZ, flags=2, toc=44)[:32] + struct.pack("<III", 1, 99, 0)
     + SPZ[32:], "extension record is cut off"),
    ("gzip-cut.spz", SPZ_2[:-20], "is cut off"),
    ("gzip-crc.spz", SPZ_2[:-8] + b"abcd" + SPZ_2[-4:], "damaged gzip data"),
    ("gzip-short.spz", gzip.compress(gzip.decompress(SPZ_2)[:-1]), "is cut off"),
    ("gzip-tiny.spz", gzip.compress(b"NGSP"), "is cut off"),
    ("gzip-magic.spz", gzip_with(lambda body: body.__setitem__(0, 0)), "does not begin with NGSP"),
    ("gzip-4.spz", gzip_with(lambda body: body.__setitem__(4, 4)), "not packed with gzip"),
    ("gzip-huge.spz", gzip_with(lambda body: struct.pack_into("<I", body, 8, 2**31)), "no scene"),
    ("gzip-bomb.spz", gzip.compress(gzip.decompress(SPZ_2) + bytes(2**22)), "holds much more than"),
]  # fmt: skip

PARQUET_CASES: list[Case] = [
    ("cut.parquet", TAICHI[:-10], "not a readable Parquet file"),
    ("magic.parquet", b"PAR1" + bytes(100), "not a readable Parquet file"),
    ("text.parquet", parquet_with_text(), "the column alpha0 is string, expected numbers"),
    ("nothing.parquet", parquet(a=[1.0]), "the column x is missing or there twice"),
    ("body.parquet", TAICHI[:4] + b"\xff" * 30 + TAICHI[34:], "damaged Parquet data"),
    ("null.parquet", parquet(x=[1.0], y=[2.0], z=[3.0]), "a raw cloud of points"),
]

GLTF_CASES: list[Case] = [
    ("cut.glb", GLB[:-4], "the .glb file is cut off"),
    ("short.glb", GLB[:9], "the .glb file is cut off"),
    ("version.glb", GLB[:4] + b"\1" + GLB[5:], "glTF binary version 1"),
    ("json.glb", GLB[:24] + b"\xff" + GLB[25:], "not valid glTF JSON"),
    ("json.gltf", b'{"asset": ', "not valid glTF JSON"),
    ("deep.gltf", b'{"asset": ' + b"[" * 10**5, "not valid glTF JSON"),
    ("none.gltf", b'{"asset": {}}', f"has splats in the extension {NAME}"),
    ("range.gltf", gltf_with(lambda d: d["accessors"][0].update(count=4)), "reaches beyond its"),
    ("huge.gltf", gltf_with(lambda d: d["accessors"][0].update(count=HUGE)), "reaches beyond its"),
    ("offset.gltf", gltf_with(lambda d: d["bufferViews"][0].update(byteOffset=HUGE)), "reaches"),
    ("stride.gltf", gltf_with(lambda d: d["bufferViews"][0].update(byteStride=0)), "reaches"),
    ("negative.gltf", gltf_with(lambda d: d["accessors"][0].update(byteOffset=-4)), "whole number"),
    ("index.gltf", gltf_with(lambda d: d["nodes"][0].update(mesh=7)), "meshes[7] does not exist"),
    ("view.gltf", gltf_with(lambda d: d["accessors"][2].update(bufferView=99)), "bufferViews[99]"),
    ("kind.gltf", gltf_with(lambda d: d["accessors"][0].update(componentType=[])), "whole number"),
    ("type.gltf", gltf_with(lambda d: d["accessors"][0].update(type="MAT4")), "POSITION does not"),
    ("sparse.gltf", gltf_with(lambda d: d["accessors"][0].update(sparse={})), "is sparse"),
    ("buffer.gltf", gltf_with(lambda d: d["buffers"][0].update(byteLength=10**6)), "shorter than"),
    ("base64.gltf", gltf_with(lambda d: d["buffers"][0].update(uri="data:;base64,*")), "base64"),
    ("uri.gltf", gltf_with(lambda d: d["buffers"][0].update(uri="data:hello")), "not base64"),
    ("gone.gltf", gltf_with(lambda d: d["buffers"][0].update(uri="gone.bin")), "no such file"),
    ("bufferless.gltf", gltf_with(lambda d: d["buffers"][0].pop("uri")), "shorter than it says"),
    ("attribute.gltf", gltf_with(lambda d: primitive(d)["attributes"].pop(f"{NAME}:SCALE")),
     f"no attribute {NAME}:SCALE"),
    ("partial.gltf",
     gltf_with(lambda d: primitive(d)["attributes"].pop(f"{NAME}:SH_DEGREE_1_COEF_1")),
     "harmonics are incomplete (3 of"),
    ("counts.gltf", gltf_with(lambda d: d["accessors"][4].update(count=2)), "2 values for 3"),
    ("kernel.gltf", gltf_with(lambda d: primitive(d)["extensions"][NAME].update(kernel="cube")),
     "the kernel 'cube', only ellipse"),
    ("packed.gltf",
     gltf_with(lambda d: primitive(d)["extensions"][NAME].update(extensions={"SPZ": {}})),
     "are packed"),
    ("loop.gltf", gltf_with(lambda d: d["nodes"][0].update(children=[0])), "two parents or is its"),
    ("mirror.gltf", gltf_with(lambda d: d["nodes"][0].update(scale=[-1, 1, 1])), "is mirrored"),
    ("squash.gltf", gltf_with(lambda d: d["nodes"][0].update(scale=[1, 2, 1])), "different"),
    ("zero.gltf", gltf_with(lambda d: d["nodes"][0].update(scale=[0, 0, 0])), "flattened"),
    ("move.gltf", gltf_with(lambda d: d["nodes"][0].update(translation=[10**400, 0, 0])), "sane"),
    ("nan.gltf", gltf_with(lambda d: d["nodes"][0].update(translation=[float("nan"), 0, 0])),
     "not finite or sane"),
    ("words.gltf", gltf_with(lambda d: d["nodes"][0].update(matrix="none")), "must be 16 numbers"),
]  # fmt: skip

CASES = [
    *PLY_CASES,
    *COMPRESSED_CASES,
    *SPLAT_CASES,
    *SPZ_CASES,
    *PARQUET_CASES,
    *GLTF_CASES,
]
