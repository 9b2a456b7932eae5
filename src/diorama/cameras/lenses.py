# SPDX-License-Identifier: Apache-2.0
"""The optics of N cameras: sends every row of a mixed batch through its own camera model."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diorama.cameras.camera_model import CameraModel
from diorama.cameras.distortion import fold_radius
from diorama.cameras.projection import (
    Projected,
    Unprojected,
    project_equirectangular,
    project_fisheye,
    project_perspective,
    unproject_equirectangular,
    unproject_fisheye,
    unproject_perspective,
)


@dataclass(frozen=True, eq=False)
class Lenses:
    """Everything about N cameras but where they stand; the fields are those of `Cameras`."""

    intrinsics: Float[Tensor, "N 4"]
    size: Int[Tensor, "N 2"]
    model: Int[Tensor, " N"]
    distortion: Float[Tensor, "N 9"]

    @cached_property
    def models(self) -> tuple[CameraModel, ...]:
        """The models that occur; cached because asking a tensor is slow next to making rays."""
        found = tuple(CameraModel(value) for value in self.model.unique().tolist())
        return found or (CameraModel.PERSPECTIVE,)

    @cached_property
    def _is_distorted(self) -> bool:
        # Zeros that are being learned still need their gradient.
        return self.distortion.requires_grad or bool((self.distortion != 0).any())

    @cached_property
    def _fold(self) -> Float[Tensor, " N"]:
        with torch.no_grad():
            return fold_radius(self.distortion, self.model == int(CameraModel.FISHEYE))

    def project(self, camera_index: Int[Tensor, " R"], points: Float[Tensor, "R 3"]) -> Projected:
        """Camera-frame points, each into its camera."""
        parts = []
        groups = self._groups(camera_index)
        for model, rows in groups:
            index, chosen = camera_index[rows], points[rows]
            if model is CameraModel.EQUIRECTANGULAR:
                parts.append(project_equirectangular(chosen, self.size.index_select(0, index)))
                continue
            intrinsics, lens = self.intrinsics.index_select(0, index), self._lens(model, index)
            if model is CameraModel.FISHEYE:
                parts.append(project_fisheye(chosen, intrinsics, *lens))
            else:
                parts.append(project_perspective(chosen, intrinsics, *lens))
        if len(parts) == 1:
            return parts[0]
        return Projected(*_ungrouped([rows for _, rows in groups], parts, len(points)))

    def unproject(self, camera_index: Int[Tensor, " R"], xy: Float[Tensor, "R 2"]) -> Unprojected:
        """Pixels of each camera into its camera frame."""
        parts = []
        groups = self._groups(camera_index)
        for model, rows in groups:
            index, chosen = camera_index[rows], xy[rows]
            if model is CameraModel.EQUIRECTANGULAR:
                parts.append(unproject_equirectangular(chosen, self.size.index_select(0, index)))
                continue
            intrinsics, lens = self.intrinsics.index_select(0, index), self._lens(model, index)
            if model is CameraModel.FISHEYE:
                parts.append(unproject_fisheye(chosen, intrinsics, *lens))
            else:
                parts.append(unproject_perspective(chosen, intrinsics, *lens))
        if len(parts) == 1:
            return parts[0]
        return Unprojected(*_ungrouped([rows for _, rows in groups], parts, len(xy)))

    def _lens(self, model: CameraModel, index: Tensor) -> tuple[Any, Any]:
        """Distortion and fold of each row, or None twice where there is nothing to undo."""
        if model is CameraModel.PERSPECTIVE and not self._is_distorted:
            return None, None
        return self.distortion.index_select(0, index), self._fold.index_select(0, index)

    def _groups(self, camera_index: Tensor) -> list[tuple[CameraModel, Any]]:
        """(model, rows) for each model that occurs; all rows at once when there is one model."""
        if len(self.models) == 1:
            return [(self.models[0], slice(None))]
        models = self.model[camera_index]
        return [(m, (models == int(m)).nonzero().squeeze(-1)) for m in self.models]


def _ungrouped(groups: list[Tensor], parts: list[Any], count: int) -> list[Tensor]:
    """The rows of all groups put back into their places, field by field."""
    order = torch.cat(groups)
    place = torch.empty_like(order)
    place[order] = torch.arange(count, device=order.device)
    return [torch.cat(columns)[place] for columns in zip(*parts, strict=True)]
