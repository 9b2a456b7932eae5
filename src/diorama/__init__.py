# SPDX-License-Identifier: Apache-2.0
"""Diorama: photographs in, 3-D scene out, on any machine.

>>> import diorama
>>> run = diorama.load("outputs/tabletop/nerf-small/first")
>>> picture = run.render(run.scene.cameras[0])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diorama.api import LoadedRun, load, method_config, train

__version__ = "0.1.0"
__all__ = ["LoadedRun", "__version__", "load", "method_config", "train"]


def __getattr__(name: str) -> Any:
    """Import the API, and with it torch, only when it is first used: the command line is quick."""
    if name in __all__:
        import diorama.api

        return getattr(diorama.api, name)
    raise AttributeError(f"module 'diorama' has no attribute {name!r}")
