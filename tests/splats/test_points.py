# SPDX-License-Identifier: Apache-2.0
"""Points to start from: raw clouds of both kinds, and the centres of splats."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

from diorama.errors import UserError
from diorama.splats import read_points, read_splats, write_splats
from tests.splats.random_splats import random_splats


def write_table(path: Path, **columns: object) -> None:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def test_raw_parquet(tmp_path: Path):
    """As the COLMAP converter of the taichi system leaves it, with lists and all."""
    path = tmp_path / "points.parquet"
    write_table(
        path,
        x=np.array([1.0, 2.0], np.float32), y=np.array([3.0, 4.0]), z=np.array([5, 6]),
        r=np.array([0, 255], np.uint8), g=np.array([10, 300]), b=np.array([20.0, 30.4]),
        error=[0.1, 0.2], track=[[1, 2], [3]],
    )  # fmt: skip
    cloud = read_points(path)
    assert cloud.points.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert cloud.colors.tolist() == [[0, 10, 20], [255, 255, 30]]
    with pytest.raises(UserError, match=r"points\.parquet: a raw cloud of points, not a trained"):
        read_splats(path)


def test_raw_parquet_without_colours_is_grey(tmp_path: Path):
    write_table(tmp_path / "p.parquet", x=[1.0], y=[2.0], z=[3.0])
    assert read_points(tmp_path / "p.parquet").colors.tolist() == [[128, 128, 128]]


def test_trained_parquet_gives_its_centres(tmp_path: Path):
    splats = random_splats(5, color="sigmoid", antialiased=True)
    write_splats(splats, tmp_path / "p.parquet")
    cloud = read_points(tmp_path / "p.parquet")
    assert torch.equal(cloud.points, splats.means)
    expected = 255 * torch.sigmoid(0.28209479 * splats.sh[:, 0])
    assert float((cloud.colors - expected).abs().max()) <= 0.5 + 1e-4


def test_plain_ply(tmp_path: Path):
    header = "ply\nformat ascii 1.0\nelement vertex 2\n"
    header += "".join(f"property float {axis}\n" for axis in "xyz")
    header += "".join(f"property uchar {name}\n" for name in ("red", "green", "blue"))
    path = tmp_path / "points.ply"
    path.write_text(header + "end_header\n1 2 3 10 20 30\n4 5 6 40 50 255\n")
    cloud = read_points(path)
    assert cloud.points.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert cloud.colors.tolist() == [[10, 20, 30], [40, 50, 255]]
    with pytest.raises(UserError, match=r"points\.ply: a cloud of points, not splats"):
        read_splats(path)
    path.write_text(path.read_text().replace("4 5 6", "4 nan 6"))
    with pytest.raises(UserError, match="1 of 2 points have a position that is not finite"):
        read_points(path)


def test_splats_of_any_format(tmp_path: Path):
    splats = random_splats(4, degree=0)
    write_splats(splats, tmp_path / "x.splat")
    cloud = read_points(tmp_path / "x.splat")
    assert torch.equal(cloud.points.sort(dim=0)[0], splats.means.sort(dim=0)[0])
