# SPDX-License-Identifier: Apache-2.0
"""Shapes in signatures are really checked while tests run: a planted wrong one must fail."""

import jaxtyping
import pytest
import torch

from diorama.ops.composite import Composite, composite_dense
from diorama.ops.sample_pdf import sample_pdf


def test_wrong_argument_shape_is_caught():
    with pytest.raises(jaxtyping.TypeCheckError, match="delta"):
        composite_dense(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 3, 1))


def test_wrong_dtype_is_caught():
    with pytest.raises(jaxtyping.TypeCheckError, match="bins"):
        sample_pdf(torch.arange(5)[None], torch.ones(1, 4), 2)


def test_wrong_dataclass_field_is_caught():
    with pytest.raises(jaxtyping.TypeCheckError, match="opacity"):
        Composite(torch.ones(2), torch.ones(2, 1), torch.ones(3))
