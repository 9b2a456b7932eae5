# SPDX-License-Identifier: Apache-2.0
"""Versions, frames and extension records of .spz that our writer does not make."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from diorama.errors import UserError
from diorama.splats import read_splats
from diorama.splats.spz import decode_spz, encode_spz
from tests.splats.random_splats import random_splats

HERE = Path("x.spz")


def with_records(raw: bytes, records: bytes) -> bytes:
    """A version 4 file with extension records between its header and its table."""
    header = bytearray(raw[:32])
    header[14] |= 2
    struct.pack_into("<I", header, 16, 32 + len(records))
    return bytes(header) + records + raw[32:]


def axes_record(code: int) -> bytes:
    other = struct.pack("<II3f", 0xADBE0002, 12, 0, 1, 2)
    return other + struct.pack("<III", 0xADBE0003, 4, code) + other


def test_version_4_layout():
    raw = encode_spz(random_splats(5, degree=1, antialiased=True))
    fields = struct.unpack_from("<4sIIBBBBI", raw)
    assert fields == (b"NGSP", 4, 5, 1, 12, 1, 6, 32)
    sizes = [struct.unpack_from("<QQ", raw, 32 + 16 * index) for index in range(6)]
    assert [size for _, size in sizes] == [45, 5, 15, 15, 20, 45]
    assert len(raw) == 32 + 96 + sum(packed for packed, _ in sizes)
    assert raw[14 + 0] == 1


def test_version_3_layout_and_first_values():
    splats = random_splats(1, degree=0)
    body = gzip.decompress(encode_spz(splats, version=3))
    assert struct.unpack_from("<4sIIBBBB", body) == (b"NGSP", 3, 1, 0, 12, 0, 0)
    assert len(body) == 16 + 9 + 1 + 3 + 3 + 4
    x = int.from_bytes(body[16:19], "little", signed=True) / 4096
    y = int.from_bytes(body[19:22], "little", signed=True) / 4096
    assert x == pytest.approx(splats.means[0, 0].item(), abs=1 / 8192)
    assert -y == pytest.approx(splats.means[0, 1].item(), abs=1 / 8192)


def test_version_1_has_half_floats():
    body = struct.pack("<4sIIBBBB", b"NGSP", 1, 1, 0, 12, 0, 0)
    body += np.array([1.5, -2.25, 1000], "<f2").tobytes()
    body += bytes([255, 127, 127, 127, 160, 160, 160, 255, 128, 128])
    splats = decode_spz(gzip.compress(body), HERE)
    assert splats.means.tolist() == [[1.5, 2.25, -1000]]
    assert splats.log_scales.tolist() == [[0, 0, 0]]
    # x = 1 leaves nothing for w.
    torch.testing.assert_close(
        splats.quaternions, torch.tensor([[0, 1, -1 / 255, -1 / 255]]), atol=1e-4, rtol=0
    )


def test_degree_4_is_cut_off():
    """All other bytes come from a file of degree 3, whose harmonics are the first 15 of 24."""
    splats = random_splats(2, degree=3)
    body = bytearray(gzip.decompress(encode_spz(splats, version=3)))
    body[12] = 4
    rest = np.frombuffer(bytes(body[-90:]), np.uint8).reshape(2, 15, 3)
    longer = np.concatenate([rest, np.full((2, 9, 3), 77, np.uint8)], axis=1)
    got = decode_spz(gzip.compress(bytes(body[:-90]) + longer.tobytes()), HERE)
    expected = decode_spz(encode_spz(splats, version=3), HERE)
    assert torch.equal(got.sh, expected.sh)
    assert "harmonics beyond degree 3, which are left out" in got.notes[0]
    assert expected.notes == ()


@pytest.mark.parametrize(
    ("code", "signs"),
    [(0, (1, -1, -1)), (4, (1, -1, -1)), (6, (1, 1, 1)), (7, (-1, -1, 1)), (1, (-1, 1, -1))],
)
def test_named_axes_are_turned(code: int, signs: tuple[int, int, int]):
    """RUB = 4 is the default, RDF = 6 is ours, LUF = 7, LDB = 1; other records are skipped."""
    splats = random_splats(3)
    raw = encode_spz(splats)
    plain = decode_spz(raw, HERE)
    turned = decode_spz(with_records(raw, axes_record(code)), HERE)
    in_file = plain.means * torch.tensor([1.0, -1, -1])
    assert torch.equal(turned.means, in_file * torch.tensor(signs))


@pytest.mark.parametrize("code", [2, 3, 5, 8, 12])
def test_mirrored_axes_are_refused(code: int):
    raw = with_records(encode_spz(random_splats(1)), axes_record(code))
    with pytest.raises(UserError, match=rf"x\.spz: .*left-handed or swapped axes \(code {code}\)"):
        decode_spz(raw, HERE)


def test_extensions_of_version_3_follow_the_arrays(tmp_path: Path):
    body = bytearray(gzip.decompress(encode_spz(random_splats(2), version=3)))
    body[14] |= 2
    plain = decode_spz(encode_spz(random_splats(2), version=3), HERE)
    (tmp_path / "x.spz").write_bytes(gzip.compress(bytes(body) + axes_record(6)))
    got = read_splats(tmp_path / "x.spz")
    assert torch.equal(got.means, plain.means * torch.tensor([1.0, -1, -1]))


def test_unknown_version_is_the_callers_mistake():
    with pytest.raises((ValueError, TypeError), match="version"):
        encode_spz(random_splats(1), version=5)  # pyright: ignore[reportArgumentType]
