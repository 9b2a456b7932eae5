# SPDX-License-Identifier: Apache-2.0
"""The picture of `diorama inspect`: cameras and bounds above, a contact sheet below."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from diorama.data.scene import Scene
from diorama.data.survey import ImageFacts
from diorama.export.contact_sheet import INK, PAPER, contact_sheet, stacked
from diorama.export.scene_plot import scene_plot

_WIDTH, _PLOT_WIDTH, _PLOT_HEIGHT = 1600, 1060, 680


def inspection_picture(scene: Scene, facts: Sequence[ImageFacts]) -> UInt8[Tensor, "H W 3"]:
    """Title, two views of the cameras, points and bounds, and thumbnails with their names."""
    plots = torch.cat(
        [
            scene_plot(scene, (_PLOT_WIDTH, _PLOT_HEIGHT), "corner"),
            scene_plot(scene, (_WIDTH - _PLOT_WIDTH, _PLOT_HEIGHT), "top"),
        ],
        dim=1,
    )
    shown = [(fact.index, fact.thumbnail) for fact in facts if fact.thumbnail is not None]
    split_of = {i: name for name in ("val", "test", "train") for i in scene.splits[name]}
    labels = [f"{scene.frames[i].name}  ({split_of.get(i, 'unused')})" for i, _ in shown]
    sheet = contact_sheet([image for _, image in shown], labels, _columns(shown), _WIDTH)
    return stacked([_title(scene), plots, sheet])


def _columns(shown: Sequence[tuple[int, Tensor]]) -> int:
    """Narrow pictures in more columns than wide ones; as full a last row as can be."""
    height, width = shown[0][1].shape[:2]
    choices = (8, 7, 6) if height >= width else (6, 5, 4)
    if len(shown) <= choices[-1]:
        return len(shown)
    return min(choices, key=lambda columns: -len(shown) % columns)


def _title(scene: Scene) -> UInt8[Tensor, "H W 3"]:
    from PIL import Image, ImageDraw, ImageFont

    strip = Image.new("RGB", (_WIDTH, 56), PAPER)
    draw = ImageDraw.Draw(strip)
    name = " ".join(scene.name.split())[:60]
    large = ImageFont.load_default(26)
    draw.text((14, 14), name, fill=INK, font=large)
    left = 14 + draw.textlength(name, font=large) + 18
    rest = (
        f"{scene.format}   {scene.kind}   near {scene.bounds.near:.3g}   far {scene.bounds.far:.3g}"
    )
    draw.text((left, 24), rest, fill=(110, 114, 122), font=ImageFont.load_default(16))
    return torch.from_numpy(np.array(strip))
