# SPDX-License-Identifier: Apache-2.0
"""Geometry of a multiresolution hash grid: each level's scale, resolution and place in the table.

The conventions are those of tiny-cuda-nn. With growth b, level l has

    scale_l = base b^l - 1,   resolution_l = ceil(scale_l) + 1 vertices on a side,

and a point x of the unit cube lies at scale_l x + 1/2 among them. A level is dense, and has
resolution^3 entries rounded up to a multiple of 8, if its vertices fit into 2^log2_table_size
entries; otherwise it has that many, and vertices share them by a hash.
"""

import math
import struct
from dataclasses import dataclass

FEATURE_COUNTS = (1, 2, 4, 8)
"""How many features an entry can have."""

LOG2_TABLE_SIZES = range(3, 31)
"""Table sizes that kernels can index."""


@dataclass(frozen=True)
class HashGridLayout:
    """L levels of F features; level l owns the table's entries `offsets[l]:offsets[l + 1]`."""

    num_levels: int
    num_features: int
    scales: tuple[float, ...]
    resolutions: tuple[int, ...]
    offsets: tuple[int, ...]
    is_dense: tuple[bool, ...]

    @property
    def num_entries(self) -> int:
        """Rows of the table, all levels together."""
        return self.offsets[-1]

    @property
    def output_size(self) -> int:
        """Numbers that one point gets: L F."""
        return self.num_levels * self.num_features

    @staticmethod
    def of(
        num_levels: int,
        num_features: int,
        log2_table_size: int,
        base_resolution: int,
        max_resolution: int,
    ) -> "HashGridLayout":
        """Levels from base to max resolution, growing by b = exp((ln max - ln base) / (L - 1))."""
        if num_levels < 1:
            raise ValueError(f"num_levels must be at least 1, got {num_levels}")
        if num_features not in FEATURE_COUNTS:
            raise ValueError(f"num_features must be one of {FEATURE_COUNTS}, got {num_features}")
        if log2_table_size not in LOG2_TABLE_SIZES:
            limits = f"{LOG2_TABLE_SIZES[0]} to {LOG2_TABLE_SIZES[-1]}"
            raise ValueError(f"log2_table_size must be {limits}, got {log2_table_size}")
        if not 1 <= base_resolution <= max_resolution < 2**20:
            raise ValueError(
                "base_resolution must be at least 1 and at most max_resolution, below 2^20, got "
                f"{base_resolution} and {max_resolution}"
            )
        scales = _scales(num_levels, base_resolution, max_resolution)
        resolutions = tuple(math.ceil(scale) + 1 for scale in scales)
        table_size, offsets = 1 << log2_table_size, [0]
        for resolution in resolutions:
            offsets.append(offsets[-1] + min((resolution**3 + 7) // 8 * 8, table_size))
        is_dense = tuple(resolution**3 <= table_size for resolution in resolutions)
        return HashGridLayout(
            num_levels, num_features, scales, resolutions, tuple(offsets), is_dense
        )


def _scales(num_levels: int, base_resolution: int, max_resolution: int) -> tuple[float, ...]:
    """base b^l - 1, rounded to float32 after every step as tiny-cuda-nn's arithmetic is.

    Where the exact scale is an integer the rounding decides the resolution, hence the size of
    the table: 32 b^5 - 1 = 127 of the Neuralangelo grid has 129 vertices there.
    """
    steps = max(num_levels - 1, 1)
    growth = _float32(math.exp((math.log(max_resolution) - math.log(base_resolution)) / steps))
    if num_levels == 1:
        growth = 1.0
    log2_growth = _float32(math.log2(growth))
    return tuple(
        _float32(_float32(_float32(2.0 ** _float32(level * log2_growth)) * base_resolution) - 1.0)
        for level in range(num_levels)
    )


def _float32(x: float) -> float:
    """The nearest number of single precision."""
    return struct.unpack("f", struct.pack("f", x))[0]
