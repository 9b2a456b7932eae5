# SPDX-License-Identifier: Apache-2.0
"""Marks the backward pass of a kernel that has no second derivative."""

import functools
from collections.abc import Callable
from typing import Any

import torch


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Make `create_graph=True` through this backward pass an error that names the way out.

    torch's decorator of this name complains only where the incoming gradient itself requires a
    gradient; with a constant one, such as that of a plain sum, the second derivative would be
    silently left out.
    """

    @functools.wraps(backward)
    def guarded(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "This native op is differentiable once; call its _reference twin where a second "
                "derivative (create_graph=True) is needed."
            )
        return backward(ctx, *gradients)

    return guarded
