# SPDX-License-Identifier: Apache-2.0
"""Files of other programs, where they lie beside the repository."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diorama.cli.main import main
from diorama.splats import Splats, read_points, read_splats, write_splats
from tests.splats.random_splats import covariances

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "splats"


def real(name: str) -> Path:
    if not (DATA / name).is_file():
        pytest.skip(f"no splats/{name} in ../shared/data")
    return DATA / name


def load(name: str) -> Splats:
    return read_splats(real(name))


@pytest.mark.parametrize(
    ("name", "count", "degree"),
    [
        ("gs_sh3_5753.ply", 5753, 3),
        ("gs_sh0_26740.ply", 26740, 0),
        ("test_sh3_64.compressed.ply", 64, 3),
    ],
)
def test_counts_and_plausible_values(name: str, count: int, degree: int):
    splats = load(name)
    assert (len(splats), splats.degree) == (count, degree)
    assert -12 < float(splats.log_scales.median()) < 3
    assert float(splats.quaternions.norm(dim=-1).min()) > 0.1
    base = 0.5 + 0.2820948 * splats.sh[:, 0]
    assert 0.1 < float(base.median()) < 0.9


@pytest.mark.parametrize(("name", "width"), [("gs_sh3_5753.ply", 62), ("gs_sh0_26740.ply", 17)])
def test_ply_values_are_those_at_their_place(name: str, width: int):
    """The 1001st row, unpacked by hand: x y z, normals, SH, opacity, scales, w x y z."""
    splats = load(name)
    raw = real(name).read_bytes()
    start = raw.index(b"end_header\n") + len(b"end_header\n")
    row = struct.unpack_from(f"<{width}f", raw, start + 1000 * width * 4)
    assert splats.means[1000].tolist() == list(row[:3])
    assert splats.sh[1000, 0].tolist() == list(row[6:9])
    assert splats.opacity_logits[1000].item() == row[-8]
    assert splats.log_scales[1000].tolist() == list(row[-7:-4])
    assert splats.quaternions[1000].tolist() == list(row[-4:])
    if splats.degree == 3:
        # Red, green and blue of coefficient 5 are 15 columns apart.
        assert splats.sh[1000, 5].tolist() == [row[9 + 4], row[9 + 19], row[9 + 34]]


def test_minimal_splat_by_hand():
    """Bytes as the file shows them: 0.1 large, colours 0x55 and 0xaa, alpha 0xe6, 80 80 80 ff."""
    splats = load("minimal.splat")
    assert splats.means.tolist() == [[-1, 0, -1], [0, 0, -1], [-1, 0, 0], [0, 0, 0]]
    torch.testing.assert_close(splats.log_scales, torch.full((4, 3), math.log(0.1)))
    base = splats.sh[:, 0] * 0.2820948 + 0.5
    low, middle, high = 0x55 / 255, 0x80 / 255, 0xAA / 255
    expected = [[low, low, middle], [high, low, middle], [low, high, middle], [high, high, middle]]
    torch.testing.assert_close(base, torch.tensor(expected))
    torch.testing.assert_close(splats.opacity_logits.sigmoid(), torch.full((4,), 0xE6 / 255))
    assert splats.quaternions.tolist() == [[0, 0, 0, 127 / 128]] * 4


@pytest.mark.parametrize("name", ["minimal-v3.spz", "minimal-v4.spz"])
def test_minimal_spz_is_the_minimal_splat(name: str):
    """The same scene by another program: positions were turned to right-up-back, and are back."""
    spz, splat = load(name), load("minimal.splat")
    assert torch.equal(spz.means, splat.means)
    torch.testing.assert_close(spz.log_scales, splat.log_scales, atol=1 / 32, rtol=0)
    torch.testing.assert_close(spz.log_scales, torch.full((4, 3), 0x7B / 16 - 10))
    torch.testing.assert_close(spz.sh, splat.sh, atol=1 / 255 / 0.15, rtol=0)
    torch.testing.assert_close(spz.opacity_logits, splat.opacity_logits)
    assert spz.quaternions.tolist() == [[1, 0, 0, 0]] * 4
    assert not spz.antialiased


def test_minimal_spz_of_version_2_by_hand():
    """8 fractional bits, -256 / 256 = -1; this writer did not turn its axes, so z comes out +1."""
    splats = load("minimal-v2.spz")
    assert splats.means.tolist() == [[-1, 0, 1], [0, 0, 1], [-1, 0, 0], [0, 0, 0]]
    assert splats.sh[0, 0, 0].item() == pytest.approx((0x55 / 255 - 0.5) / 0.15)
    x = 0x80 / 127.5 - 1
    w = math.sqrt(1 - 3 * x * x)
    expected = torch.tensor([[w, x, -x, -x]] * 4)
    torch.testing.assert_close(splats.quaternions, expected)


def test_compressed_ply_first_splat_by_hand():
    """Every field of the first splat, taken from the words of the file bit by bit."""
    path = real("test_sh3_64.compressed.ply")
    splats, raw = read_splats(path), path.read_bytes()
    start = raw.index(b"end_header\n") + len(b"end_header\n")
    chunk = struct.unpack_from("<18f", raw, start)
    position, rotation, scale, color = struct.unpack_from("<4I", raw, start + 72)
    sh = raw[start + 72 + 64 * 16 :][:45]

    def between(low: int, word: int) -> list[float]:
        places = (word >> 21) / 2047, (word >> 11 & 1023) / 1023, (word & 2047) / 2047
        return [chunk[low + i] * (1 - t) + chunk[low + 3 + i] * t for i, t in enumerate(places)]

    assert splats.means[0].tolist() == pytest.approx(between(0, position), abs=1e-6)
    assert splats.log_scales[0].tolist() == pytest.approx(between(6, scale), abs=1e-5)
    green = (color >> 16 & 255) / 255
    green = chunk[13] * (1 - green) + chunk[16] * green
    assert splats.sh[0, 0, 1].item() == pytest.approx((green - 0.5) / 0.2820948, abs=1e-5)
    assert splats.opacity_logits[0].sigmoid().item() == pytest.approx((color & 255) / 255, abs=1e-3)
    largest, rest = rotation >> 30, [rotation >> shift & 1023 for shift in (20, 10, 0)]
    others = [value for i, value in enumerate(splats.quaternions[0].tolist()) if i != largest]
    expected = [(value / 1023 - 0.5) * math.sqrt(2) for value in rest]
    assert others == pytest.approx(expected, abs=1e-6)
    # Coefficient 3 of blue: blues begin at column 30, the constant is not among them.
    byte = sh[30 + 2]
    assert 0 < byte < 255
    assert splats.sh[0, 3, 2].item() == pytest.approx(((byte + 0.5) / 256 - 0.5) * 8)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("gs_sh0_26740.ply", 0.1),
        ("gs_sh3_5753.ply", 0.1),
        ("test_sh3_64.compressed.ply", 0.3),
        ("minimal.splat", 0.1),
        ("minimal-v2.spz", 0.1),
        ("minimal-v3.spz", 0.1),
        ("minimal-v4.spz", 0.1),
    ],
)
def test_every_file_is_rendered_along_an_orbit(tmp_path: Path, name: str, least: float):
    """Each frame shows something, but not everywhere, and no two are the same."""
    path, out = str(real(name)), tmp_path / "out"
    options = ["--path", "orbit", "--frames", "2", "--scale", "0.2", "--no-video", "--quiet"]
    main(["render", path, *options, "--outputs", "rgb", "alpha", "--output", str(out)])
    frames = sorted((out / "rgb").glob("*.png"))
    pictures = [np.asarray(Image.open(frame).convert("RGB")).astype(int) for frame in frames]
    assert [picture.shape for picture in pictures] == [(120, 160, 3)] * 2
    for picture in pictures:
        is_lit = picture.max(axis=-1) > 10
        assert least < is_lit.mean() < 0.95
        assert picture[is_lit].std() > 5
    assert np.abs(pictures[0] - pictures[1]).mean() > 1
    assert len(list((out / "alpha").glob("*.png"))) == 2


@pytest.mark.parametrize("name", ["x.ply", "x.compressed.ply", "x.spz", "x.splat", "x.glb"])
def test_a_trained_scene_survives_every_format(tmp_path: Path, name: str):
    splats = load("gs_sh3_5753.ply")
    write_splats(splats, tmp_path / name)
    back = read_splats(tmp_path / name)
    assert len(back) == len(splats)
    size = splats.means.amax(0) - splats.means.amin(0)
    torch.testing.assert_close(back.means.mean(0), splats.means.mean(0), atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(back.means.amax(0) - back.means.amin(0), size, atol=1e-2, rtol=1e-3)
    volume, old = (part.log_scales.sum(1).mean() for part in (back, splats))
    assert float(volume) == pytest.approx(float(old), abs=0.5)
    trace, old = (torch.einsum("nii->n", covariances(part)).median() for part in (back, splats))
    assert float(trace) == pytest.approx(float(old), rel=0.1)


def test_points_of_a_trained_scene():
    cloud = read_points(real("gs_sh0_26740.ply"))
    assert cloud.points.shape == (26740, 3)
    assert 10 < float(cloud.colors.float().mean()) < 245
