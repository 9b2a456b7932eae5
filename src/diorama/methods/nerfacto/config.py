# SPDX-License-Identifier: Apache-2.0
"""Settings of the proposal-network method: Nerfstudio's defaults, appearance size excepted."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.config import ModelConfig


@dataclass(frozen=True)
class NerfactoConfig(ModelConfig):
    """A hash-grid field, the proposal networks that say where to sample it, and the losses."""

    target: ClassVar[str] = "diorama.methods.nerfacto.model:NerfactoModel"

    levels: int = 16
    """Levels of the field's hash grid."""
    features: int = 2
    """Features per level: 1, 2, 4 or 8."""
    log2_table: int = 19
    """Base-2 logarithm of the entries of one level's table."""
    base_resolution: int = 16
    """Cells per side of the coarsest level, of the field and of the proposal networks."""
    max_resolution: int = 2048
    """Cells per side of the field's finest level."""
    width: int = 64
    """Units of each hidden layer of the field."""
    color_layers: int = 2
    """Hidden layers of the colour network."""
    sh_bands: int = 4
    """Bands of spherical harmonics that encode the viewing direction."""
    appearance_size: int | None = None
    """Numbers per training image that explain its exposure and colours; other views get those of
    the training images around them. Unset: 16, and 0 for objects."""
    samples: int = 48
    """Samples of the field per ray."""
    proposal_samples: tuple[int, ...] = (256, 96)
    """Samples per ray of each proposal network, first to last."""
    proposal_resolutions: tuple[int, ...] = (128, 256)
    """Cells per side of each proposal network's finest level."""
    proposal_levels: int = 5
    """Levels of the proposal networks' hash grids, two features each."""
    proposal_log2_table: int = 17
    """Base-2 logarithm of the entries of one level of a proposal network."""
    proposal_width: int = 16
    """Units of the proposal networks' hidden layer."""
    proposal_every: int = 5
    """Proposal networks rest for this many steps between updates, once warm."""
    proposal_warmup: int = 5000
    """Steps over which that pause grows to its length."""
    anneal_steps: int = 1000
    """Steps over which sampling goes from uniform to what the proposal networks say."""
    spacing: Literal["auto", "piecewise", "uniform"] = "auto"
    """First samples: even up to the scene and ever sparser beyond, or even between the faces of
    the scene's box; auto takes the latter for objects."""
    contract: bool | None = None
    """Fold all of space into the grids; unset: for all but objects."""
    far: float = 1000.0
    """Farthest sample of a contracted scene, in half sides of the scene's box."""
    background: Literal["auto", "last-sample", "random", "white", "black"] = "auto"
    """Behind the last sample: its own colour, or a fixed one, or random ones to train over; auto
    takes random ones for images with alpha, else the last sample's."""
    initial_density: float | None = None
    """Density at the start, per half side of the box; unset: 0.1, and 1 for objects."""
    exposure: bool = False
    """Learn gains of the colour channels for each training image; other views are exposed as the
    training images around them."""
    refine_poses: bool | None = False
    """Correct the training cameras' poses along with the scene; other views are corrected as the
    training cameras around them. None: for all but objects."""
    interlevel: float = 1.0
    """Weight of the loss that teaches the proposal networks."""
    distortion: float | None = None
    """Weight of the distortion loss, which pulls a ray's samples together; unset: 0.002, and 0
    for objects."""
    min_views: int = 0
    """There is nothing where fewer training cameras than this look; 0 asks none."""
    point_loss: float = 0.0
    """Weight of the loss on rays to sparse points, where the data set says who saw them; it falls
    to a tenth until training ends."""
    point_rays: int = 128
    """Rays to sparse points in a step that has them: each in the first quarter of training, then
    every fourth."""
    plainness: float = 0.0
    """Weight of the loss that asks surfaces to be plain in views that nobody photographed; it
    falls to a tenth until training ends."""
    plain_patches: int = 6
    """Patches of such views in a step that has them, of 64 rays each: the steps of point_rays."""
    photo_plainness: float = 0.0
    """Weight of the loss that asks surfaces to be plain where photographs are, when training ends;
    it grows to it from a hundredth, and looks at the patches of --data.patches."""
    fill_unphotographed: bool = False
    """In pictures of unbounded scenes, draw colours in from around where matter shows that no
    training pixel showed."""
    supersample_thin: bool = False
    """In pictures, nine rays through each pixel that shows something thin, instead of one."""
    gradient_scaling: bool = False
    """Weaken gradients of samples close to the camera by their squared distance."""
    render_chunk: int = 1 << 13
    """Rays rendered at once; bounds the memory of rendering, not the picture."""
