# SPDX-License-Identifier: Apache-2.0
"""Which ops have benchmark cases; none of their modules is imported before it is asked for."""

import difflib
import importlib
from collections.abc import Sequence

from diorama.bench.case import Case
from diorama.errors import UserError

OPS: tuple[str, ...] = (
    *("hash_grid", "fused_mlp", "march", "cull", "composite", "distortion"),
    *("sample_pdf", "spherical_harmonics", "ssim", "adam", "adam_rows"),
    *("project_gaussians", "sh_colors", "tile_lists", "rasterize"),
)
"""The ops in the order of the table; `diorama.bench.<op>` holds the `cases()` of each."""


def choose_ops(wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted ops, each once; all when none is named."""
    for name in wanted:
        if name not in OPS:
            close = difflib.get_close_matches(name, OPS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(OPS)}."
            raise UserError(f"--ops {name}: there is no such op; {hint}")
    return tuple(dict.fromkeys(wanted)) or OPS


def cases_of(op: str) -> list[Case]:
    """The op's cases, with their inputs made."""
    return importlib.import_module(f"diorama.bench.{op}").cases()
