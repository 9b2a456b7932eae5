# SPDX-License-Identifier: Apache-2.0
"""Finding formats, saying what is lost, and leaving the disk in order."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diorama.errors import UserError
from diorama.splats import SUFFIXES, read_splats, write_splats
from tests.splats.random_splats import colors_seen, random_directions, random_splats


def test_content_decides_between_the_two_plys(tmp_path: Path):
    write_splats(random_splats(3, degree=1), tmp_path / "x.compressed.ply")
    (tmp_path / "x.compressed.ply").rename(tmp_path / "y.ply")
    assert read_splats(tmp_path / "y.ply").degree == 1
    write_splats(random_splats(3, degree=2), tmp_path / "plain.ply")
    (tmp_path / "plain.ply").rename(tmp_path / "z.compressed.ply")
    assert read_splats(tmp_path / "z.compressed.ply").degree == 2


def test_unknown_ending_is_read_by_content(tmp_path: Path):
    write_splats(random_splats(3), tmp_path / "x.spz")
    (tmp_path / "x.spz").rename(tmp_path / "download")
    assert len(read_splats(tmp_path / "download")) == 3


@pytest.mark.parametrize(
    ("written", "renamed", "ending"),
    [("x.spz", "x.ply", ".spz"), ("x.ply", "x.splat", ".ply"), ("x.glb", "x.spz", ".glb"),
     ("x.gltf", "x.glb", ".gltf"), ("x.parquet", "x.ply", ".parquet")],
)  # fmt: skip
def test_wrong_ending_is_named(tmp_path: Path, written: str, renamed: str, ending: str):
    splats = random_splats(2, color="sigmoid" if ".parquet" in written else "shifted")
    write_splats(splats, tmp_path / written)
    (tmp_path / written).rename(tmp_path / renamed)
    with pytest.raises(UserError, match=rf"{renamed}: by its content .* to end in \{ending}\."):
        read_splats(tmp_path / renamed)


def test_endings_that_cannot_be(tmp_path: Path):
    with pytest.raises(UserError, match=r"cannot be written as \.obj; use one of \.ply"):
        write_splats(random_splats(1), tmp_path / "x.obj")
    (tmp_path / "x.ksplat").write_bytes(bytes(64))
    with pytest.raises(UserError, match=r"x\.ksplat: not a splat file that can be read; convert"):
        read_splats(tmp_path / "x.ksplat")
    with pytest.raises(UserError, match=r"x\.ply: no such file"):
        read_splats(tmp_path / "x.ply")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x.ply", []),
        ("x.spz", []),
        ("x.splat", ["degree 3", "antialiasing"]),
        ("x.glb", ["antialiasing"]),
        ("x.gltf", ["antialiasing"]),
        ("x.parquet", ["fitted anew"]),
    ],
)
def test_losses_are_told(tmp_path: Path, name: str, expected: list[str]):
    notes = write_splats(random_splats(4, antialiased=True), tmp_path / name)
    assert len(notes) == len(expected)
    for note, words in zip(notes, expected, strict=True):
        assert words in note
        assert note.endswith(".")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_sigmoid_colours_arrive_as_colours(tmp_path: Path, suffix: str):
    """The base colour of a splat of one colour, whatever the format."""
    splats = random_splats(30, degree=0, color="sigmoid", antialiased=False)
    notes = write_splats(splats, tmp_path / f"x{suffix}")
    assert any("fitted anew" in note for note in notes) == (suffix != ".parquet")
    back = read_splats(tmp_path / f"x{suffix}")
    nearest = torch.cdist(splats.means, back.means).argmin(dim=1)
    direction = random_directions(1)
    got, expected = colors_seen(back.select(nearest), direction), colors_seen(splats, direction)
    assert float((got - expected).abs().max()) < 1.5 / 255


def test_parquet_says_that_it_antialiases(tmp_path: Path):
    notes = write_splats(random_splats(2, color="sigmoid"), tmp_path / "x.parquet")
    assert len(notes) == 1
    assert "too thin" in notes[0]


def test_spz_says_what_it_clips(tmp_path: Path):
    splats = random_splats(10)
    sh, scales = splats.sh.clone(), splats.log_scales.clone()
    sh[0, 5], sh[1, 0, 0], scales[2] = 1.5, 4.0, -12.0
    notes = write_splats(replace(splats, sh=sh, log_scales=scales), tmp_path / "x.spz")
    assert [note.split(" are")[0] for note in notes] == [
        "3 of 30 sizes outside e^-10 to e^5.9",
        "1 of 30 base colours beyond ±3.33",
        "3 of 450 harmonics beyond ±1",
    ]


def test_broken_splats_are_left_out_and_counted(tmp_path: Path):
    splats = random_splats(5)
    means, sh = splats.means.clone(), splats.sh.clone()
    means[0, 1], sh[3, 7, 2] = torch.nan, torch.inf
    notes = write_splats(replace(splats, means=means, sh=sh), tmp_path / "x.ply")
    assert notes == ["2 splats with numbers that are not finite are left out."]
    assert torch.equal(read_splats(tmp_path / "x.ply").means, splats.means[[1, 2, 4]])
    with pytest.raises(UserError, match=r"y\.ply: there is no splat to write"):
        write_splats(replace(splats, means=means * torch.nan), tmp_path / "y.ply")
    with pytest.raises(UserError, match="there is no splat to write"):
        write_splats(random_splats(0), tmp_path / "y.ply")


def test_failed_write_leaves_the_old_file(tmp_path: Path):
    (tmp_path / "x.ply").mkdir()
    with pytest.raises(UserError, match=r"x\.ply: .*; choose a folder that exists"):
        write_splats(random_splats(1), tmp_path / "x.ply")
    assert [path.name for path in tmp_path.iterdir()] == ["x.ply"]
    with pytest.raises(UserError, match="No such file or directory; choose a folder"):
        write_splats(random_splats(1), tmp_path / "nowhere" / "x.ply")


def test_zero_quaternions_are_written_as_no_rotation(tmp_path: Path):
    splats = replace(random_splats(2, degree=0), quaternions=torch.zeros(2, 4))
    for suffix in SUFFIXES:
        write_splats(splats, tmp_path / f"x{suffix}")
        quaternions = read_splats(tmp_path / f"x{suffix}").quaternions
        torch.testing.assert_close(
            quaternions, torch.tensor([[1.0, 0, 0, 0]] * 2), atol=0.01, rtol=0
        )


def test_write_replaces_the_old_file(tmp_path: Path):
    for count in (3, 5):
        write_splats(random_splats(count), tmp_path / "x.spz")
        assert len(read_splats(tmp_path / "x.spz")) == count
