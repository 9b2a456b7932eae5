# SPDX-License-Identifier: Apache-2.0
"""Settings of the hash-grid method; the defaults are Instant-NGP's."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.config import ModelConfig


@dataclass(frozen=True)
class NgpConfig(ModelConfig):
    """A hash-grid field, an occupancy grid that says where to sample it, and the losses."""

    target: ClassVar[str] = "diorama.methods.ngp.model:NgpModel"

    levels: int = 16
    """Levels of the hash grid."""
    features: int = 2
    """Features per level: 1, 2, 4 or 8."""
    log2_table: int = 19
    """Base-2 logarithm of the entries of one level's table."""
    base_resolution: int = 16
    """Cells per side of the coarsest level."""
    max_resolution: int = 4096
    """Cells per side of the finest level."""
    width: int = 64
    """Units of each hidden layer."""
    color_layers: int = 2
    """Hidden layers of the colour network."""
    sh_bands: int = 4
    """Bands of spherical harmonics that encode the viewing direction."""
    appearance_size: int = 0
    """Numbers per training image that explain its exposure (0: all images look alike)."""
    background: Literal["auto", "random", "white", "black"] = "auto"
    """Colour behind the scene; auto trains images with alpha over random colours."""
    refine_poses: bool = False
    """Correct the training cameras' poses along with the scene; other views are corrected as the
    training cameras around them."""
    contract: bool | None = None
    """Fold all of space into the grid; unset: for unbounded scenes."""
    grid_resolution: int = 128
    """Cells per side of the occupancy grid."""
    grid_levels: int | None = None
    """Occupancy grids, each twice as large as the last; unset: 1, and 5 for unbounded scenes."""
    grid_every: int = 16
    """Steps between updates of the occupancy grid."""
    grid_warmup: int = 256
    """Steps during which an update looks at all cells, and nothing is culled."""
    grid_share: int = 4
    """After that an update looks at one in so many cells, and as many of the occupied ones."""
    march_steps: int = 1024
    """Steps along the diagonal of the scene's box."""
    cone: float | None = None
    """Steps grow with this times the distance; unset: 0, and 1/256 for unbounded scenes."""
    min_alpha: float | None = None
    """Samples less opaque than this and than the mean cell are left out once the grid is warm, so
    that fog explains nothing; unset: 0, and 0.01 for unbounded scenes."""
    sample_budget: int = 1 << 18
    """Samples per training step; the number of rays follows it."""
    max_rays: int = 1 << 14
    """Rays per training step at most."""
    loss: Literal["mse", "huber"] = "huber"
    """Error of a colour: squared, or linear beyond 0.1."""
    distortion: float | None = None
    """Weight of the distortion loss, which pulls a ray's samples together; unset: 0, and 0.0005 for
    unbounded scenes."""
    opacity: float = 0.0
    """Weight of the entropy of a ray's opacity: rays become opaque or empty."""
    render_steps: int | None = None
    """Renderings take so many steps for one of training, which has jitter to average over; unset:
    2, and 1 for unbounded scenes, whose rays have many."""
    render_chunk: int = 1 << 16
    """Rays rendered at once; bounds the memory of rendering, not the picture."""
