# SPDX-License-Identifier: Apache-2.0
"""Four Gaussians whose image a CUDA rasteriser made, drawn by ours."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from diorama.cameras import Cameras
from diorama.methods.splat.config import SplatConfig
from diorama.methods.splat.drawing import Style, draw
from diorama.methods.splat.gaussians import Gaussians
from diorama.splats import Splats

FILE = Path(__file__).resolve().parents[2] / "../shared/data/splats/tiny_case.safetensors"


@pytest.mark.skipif(not FILE.exists(), reason="the shared data set is not here")
def test_the_image_of_a_cuda_rasteriser():
    case = load_file(FILE)
    gaussians = Gaussians(
        Splats(
            means=case["means"],
            quaternions=case["quats"],
            log_scales=case["scales"],
            opacity_logits=case["opacities"],
            sh=case["coeffs"],
        )
    )
    pose = torch.eye(3, 4)
    pose[:, 3] = torch.tensor([0.123, 0.456, -8.0])
    camera = Cameras.pinhole(pose, 61.5, 61.5, 61.5, 41.0, 123, 82)
    style = Style(torch.zeros(3), degree=3, has_depth=False)
    drawn = draw(gaussians, camera, SplatConfig(max_alpha=0.999), style)
    wanted = case["out_img"]
    assert drawn.alpha.max() > 0.5
    torch.testing.assert_close(drawn.rgb.detach(), wanted[..., :3], atol=1e-4, rtol=0)
    torch.testing.assert_close(drawn.alpha.detach(), wanted[..., 3], atol=1e-4, rtol=0)
