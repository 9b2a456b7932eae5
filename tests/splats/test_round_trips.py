# SPDX-License-Identifier: Apache-2.0
"""What is written is read back, within what the bits of each format can tell apart."""

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diorama.splats import Splats, read_splats, write_splats
from tests.splats.random_splats import random_splats, rotation_angles

SH_DC = 0.28209479
EXACT = 1e-6
HALF_BYTE = 0.5 / 255


def angle_of_three(half_step: float) -> float:
    """The largest angle when three components of a unit quaternion are off by half a step each.

    The fourth is at least 1/2, so it is off by at most sqrt(3) times as much as the three
    together: |dq| <= 2 sqrt(3) half_step, and the angle is twice that.
    """
    return 4 * math.sqrt(3) * half_step


# w = sqrt(1 - |v|^2) near w = 0: its square is off by 2 d, with d the error of the vector v.
BYTES_OF_VECTOR = math.sqrt(3) * 0.5 / 127.5
ANGLE_OF_VECTOR = 2.1 * math.sqrt(2 * BYTES_OF_VECTOR + 2 * BYTES_OF_VECTOR**2)


@dataclass(frozen=True)
class Precision:
    """The largest error of each parameter; None: chunks decide, and another test looks."""

    mean: float | None = EXACT
    log_scale: float | None = EXACT
    angle: float = EXACT
    opacity: float = EXACT
    base: float | None = EXACT
    degree_1: float = EXACT
    degree_2: float = EXACT


SPZ = Precision(
    mean=0.5 / 2**12,
    log_scale=0.5 / 16,
    angle=angle_of_three(0.5 / 511 * math.sqrt(0.5)),
    opacity=HALF_BYTE,
    base=HALF_BYTE / 0.15,
    degree_1=(4 + 0.5) / 128,
    degree_2=(8 + 0.5) / 128,
)
COMPRESSED = Precision(
    mean=None,
    log_scale=None,
    angle=angle_of_three(0.5 / 1023 * math.sqrt(2)),
    opacity=HALF_BYTE,
    base=None,
    degree_1=1 / 64,
    degree_2=1 / 64,
)
# A component of 1 is stored as 255 / 128 - 1, a whole step too small.
SPLAT = Precision(angle=4 * 1 / 128 * 1.05, opacity=HALF_BYTE, base=HALF_BYTE / SH_DC)

CASES = [
    ("x.ply", {}, Precision(), range(4)),
    ("x.compressed.ply", {}, COMPRESSED, range(4)),
    ("x.spz", {}, SPZ, range(4)),
    ("x.spz", {"spz_version": 3}, SPZ, range(4)),
    ("x.spz", {"spz_version": 2}, replace(SPZ, angle=ANGLE_OF_VECTOR), range(4)),
    ("x.splat", {}, SPLAT, [0]),
    ("x.glb", {}, Precision(), range(4)),
    ("x.gltf", {}, Precision(), [0, 3]),
]


def matched(splats: Splats, back: Splats) -> Splats:
    """`back` in the order of `splats`, by nearest position; every one must be claimed once."""
    nearest = torch.cdist(splats.means.double(), back.means.double()).argmin(dim=1)
    assert len(nearest.unique()) == len(splats)
    return back.select(nearest)


def worst(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).abs().max()) if a.numel() else 0.0


def assert_within(back: Splats, splats: Splats, precision: Precision) -> None:
    tiny = 1e-6
    measured = {
        "mean": worst(back.means, splats.means),
        "log_scale": worst(back.log_scales, splats.log_scales),
        "angle": float(rotation_angles(back, splats).max()),
        "opacity": worst(back.opacity_logits.sigmoid(), splats.opacity_logits.sigmoid()),
        "base": worst(back.sh[:, 0], splats.sh[:, 0]),
        "degree_1": worst(back.sh[:, 1:4], splats.sh[:, 1:4]),
        "degree_2": worst(back.sh[:, 4:], splats.sh[:, 4:]),
    }
    for field in fields(Precision):
        limit = getattr(precision, field.name)
        if limit is not None:
            assert measured[field.name] <= limit + tiny, field.name


@pytest.mark.parametrize(
    ("name", "options", "precision", "degree"),
    [(n, o, p, d) for n, o, p, degrees in CASES for d in degrees],
)
def test_round_trip(tmp_path: Path, name: str, options: dict, precision: Precision, degree: int):
    splats = random_splats(600, degree)
    assert write_splats(splats, tmp_path / name, **options) == []
    assert [path.name for path in tmp_path.iterdir()] == [name]
    back = read_splats(tmp_path / name)
    assert (back.degree, back.color, back.antialiased) == (degree, "shifted", False)
    assert_within(matched(splats, back), splats, precision)


@pytest.mark.parametrize("name", ["x.ply", "x.compressed.ply", "x.spz"])
@pytest.mark.parametrize("antialiased", [True, False])
def test_antialiasing_is_kept(tmp_path: Path, name: str, antialiased: bool):
    splats = random_splats(5, antialiased=antialiased)
    assert write_splats(splats, tmp_path / name) == []
    assert read_splats(tmp_path / name).antialiased == antialiased


def test_taichi_table_is_exact(tmp_path: Path):
    splats = random_splats(300, color="sigmoid", antialiased=True)
    assert write_splats(splats, tmp_path / "x.parquet") == []
    back = read_splats(tmp_path / "x.parquet")
    assert (back.color, back.antialiased) == ("sigmoid", True)
    for name in ("means", "quaternions", "log_scales", "opacity_logits", "sh"):
        assert torch.equal(getattr(back, name), getattr(splats, name))


def test_chunks_bound_the_error_of_compressed_ply(tmp_path: Path):
    """11, 10 and 11 bits (colour: 8) between the extremes of 256 splats, in the file's order."""
    splats = random_splats(600)
    write_splats(splats, tmp_path / "x.compressed.ply")
    back = read_splats(tmp_path / "x.compressed.ply")
    claimed = torch.cdist(back.means.double(), splats.means.double()).argmin(dim=1)
    sorted_splats = splats.select(claimed)
    bits = torch.tensor([11, 10, 11])
    for rows in torch.arange(600).split(256):
        for values, got, steps in (
            (sorted_splats.means, back.means, 2**bits - 1),
            (sorted_splats.log_scales, back.log_scales, 2**bits - 1),
            (sorted_splats.sh[:, 0], back.sh[:, 0], torch.tensor([255] * 3)),
        ):
            extent = values[rows].amax(0) - values[rows].amin(0)
            error = (got[rows] - values[rows]).abs().amax(0)
            assert (error <= 0.5 * extent / steps + 5e-6).all()
    # Morton order keeps neighbours together: chunks are smaller than the scene.
    first = back.means[:256]
    assert float((first.amax(0) - first.amin(0)).prod()) < 0.8 * 40**3


def test_splat_file_begins_with_the_weightiest(tmp_path: Path):
    splats = random_splats(100, degree=0)
    write_splats(splats, tmp_path / "x.splat")
    back = read_splats(tmp_path / "x.splat")
    weight = matched(back, splats).log_scales.sum(1).exp() * (
        matched(back, splats).opacity_logits.sigmoid()
    )
    assert (weight.diff() <= 0).all()


@pytest.mark.parametrize("name", ["x.compressed.ply", "x.spz", "x.splat"])
def test_second_round_trip_changes_little(tmp_path: Path, name: str):
    """Opaque and clear splats stay so: the ends of the scale are not pushed inwards each time."""
    splats = random_splats(40, degree=0)
    opacity = torch.linspace(-20, 20, 40)
    write_splats(replace(splats, opacity_logits=opacity), tmp_path / name)
    once = read_splats(tmp_path / name)
    write_splats(once, tmp_path / name)
    twice = read_splats(tmp_path / name)
    assert torch.equal(once.opacity_logits.sort()[0], twice.opacity_logits.sort()[0])
    assert float(once.opacity_logits.max()) > 6


@settings(max_examples=15)
@given(
    scale=st.floats(1e-4, 1e5),
    count=st.sampled_from([1, 2, 255, 257]),
    seed=st.integers(0, 1000),
)
def test_spz_positions_suit_the_size_of_the_scene(
    tmp_path_factory: pytest.TempPathFactory, scale: float, count: int, seed: int
):
    """At most a quarter of a splat's size off in small scenes, one part in 2^22 in huge ones."""
    splats = random_splats(count, 0, seed)
    splats = replace(
        splats, means=scale * splats.means, log_scales=torch.full((count, 3), math.log(scale / 50))
    )
    path = tmp_path_factory.mktemp("spz") / "x.spz"
    write_splats(splats, path)
    error = worst(read_splats(path).means, splats.means)
    assert error <= max(min(0.5 / 2**12, scale / 50 / 8), 20 * scale / 2**22)
