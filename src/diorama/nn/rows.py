# SPDX-License-Identifier: Apache-2.0
"""Rows of a table by index, with a gradient that is the same on every run."""

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


def rows(table: Float[Tensor, "R C"], index: Int[Tensor, " N"]) -> Float[Tensor, "N C"]:
    """table[index]; where a row is taken often, its gradients are summed in a fixed order.

    torch's `table[index]` sums them with atomics on several threads, in any order. It also reads
    number by number; an embedding copies whole rows, which is several times as fast, but many times
    as slow where these are not contiguous.
    """
    return functional.embedding(index, table.contiguous())
