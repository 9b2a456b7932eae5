# SPDX-License-Identifier: Apache-2.0
"""Procedural scenes with exact ground truth, and Blender-format data sets made from them.

>>> from diorama.scenes import load_procedural, make_scene
>>> folder = make_scene("tabletop", size=160)          # --data of any method; cached
>>> truth = load_procedural("tabletop").render(camera)  # rgb, alpha, depth, normal, mask
"""

from pathlib import Path
from typing import TYPE_CHECKING

from diorama.errors import UserError

if TYPE_CHECKING:
    from diorama.scenes.procedural import ProceduralScene

__all__ = ["SCENES", "load_procedural", "make_scene"]

SCENES = ("tabletop", "spheres")
"""Names that ``load_procedural`` and ``make_scene`` know."""


def load_procedural(name: str) -> "ProceduralScene":
    """The scene itself: sdf, albedo, normal, render, mesh."""
    from diorama.scenes.spheres import spheres
    from diorama.scenes.tabletop import tabletop

    makers = {"tabletop": tabletop, "spheres": spheres}
    if name not in makers:
        raise UserError(f"There is no procedural scene {name!r}; choose from {', '.join(SCENES)}.")
    return makers[name]()


def make_scene(
    name: str,
    folder: str | Path | None = None,
    size: int = 160,
    num_train: int = 40,
    num_val: int = 4,
    num_test: int = 8,
    supersampling: int = 2,
) -> Path:
    """A Blender-format folder of square RGBA images of the scene, made on first use.

    Without ``folder`` it lives in the user's cache, in a folder named after its parameters; an
    incomplete or damaged one is made again.
    """
    from diorama.scenes.dataset import DatasetRecipe, write_dataset
    from diorama.scenes.folders import build_once, cache_folder

    scene = load_procedural(name)
    recipe = DatasetRecipe(name, size, num_train, num_val, num_test, supersampling)
    target = cache_folder(name, recipe.digest()) if folder is None else Path(folder)
    return build_once(target, recipe.to_plain(), lambda path: write_dataset(scene, recipe, path))
