# SPDX-License-Identifier: Apache-2.0
"""What TensorBoard itself would stumble over."""

import math
from pathlib import Path

import pytest
import torch

from diorama.engine.tensorboard_log import TensorBoardLog


@pytest.mark.parametrize(
    "values",
    [torch.empty(0), torch.full((3,), math.nan), torch.tensor([1.0, math.inf, 2.0])],
    ids=["none", "none finite", "some"],
)
def test_histograms_of_anything(tmp_path: Path, values: torch.Tensor):
    log = TensorBoardLog(tmp_path, 0)
    log.histogram(1, "values", values)
    log.close()
    events = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (b"values" in events) == bool(values.isfinite().any())
