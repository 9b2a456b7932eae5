# SPDX-License-Identifier: Apache-2.0
"""The named configuration of the proposal-network method: nerfacto, sized for a CPU."""

from diorama.config import FieldOptimConfig, LogConfig, RayDataConfig, TrainerConfig
from diorama.methods.nerfacto.config import NerfactoConfig


def nerfacto() -> TrainerConfig:
    """Fewer rays, samples and table entries than published; the rate falls to its end."""
    return TrainerConfig(
        method="nerfacto",
        max_steps=30_000,
        data=RayDataConfig(rays=1024, detail=0.5, patches=None, max_side=800, adjust_cameras=True),
        model=NerfactoConfig(
            levels=8,
            features=4,
            log2_table=20,
            color_layers=1,
            samples=32,
            proposal_samples=(64, 48),
            proposal_warmup=1000,
            anneal_steps=500,
            gradient_scaling=True,
            exposure=True,
            refine_poses=None,
            min_views=2,
            point_loss=0.02,
            plainness=0.03,
            photo_plainness=2.0,
            fill_unphotographed=True,
            supersample_thin=True,
            background="random",
            render_chunk=1 << 12,
        ),
        optim=FieldOptimConfig(lr=1e-2, lr_final=1e-4, warmup_steps=50, eps=1e-15, pose_lr=1e-4),
        log=LogConfig(eval_every=1000),
    )
