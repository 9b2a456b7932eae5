# SPDX-License-Identifier: Apache-2.0
"""Random states: derived per step from the seed, and saved where libraries keep their own."""

import contextlib
import hashlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor


def derived_seed(*parts: int | str) -> int:
    """A seed that is a function of the parts and looks unrelated for neighbouring ones."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def seed_everything(seed: int) -> None:
    """Seed torch, numpy and Python, for initial weights and for libraries that draw globally."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  (the global one is meant)
    random.seed(seed)


def rng_tensors() -> dict[str, Tensor]:
    """The states of torch's global generators."""
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        cuda = torch.cuda.get_rng_state_all()
        states |= {f"cuda/{i}": state for i, state in enumerate(cuda)}
    return states


def rng_plain() -> dict[str, Any]:
    """The states of Python's and numpy's global generators as plain data."""
    version, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    return {
        "python": [version, list(words), gauss],
        "numpy": {
            "key": numpy_state["state"]["key"].tolist(),
            "pos": int(numpy_state["state"]["pos"]),
            "has_gauss": int(numpy_state["has_gauss"]),
            "gauss": float(numpy_state["gauss"]),
        },
    }


def restore_rng(tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
    """Set every global generator to what `rng_tensors` and `rng_plain` gave."""
    torch.set_rng_state(tensors["torch"])
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            if f"cuda/{i}" in tensors:
                torch.cuda.set_rng_state(tensors[f"cuda/{i}"], i)
    version, words, gauss = plain["python"]
    random.setstate((version, tuple(words), gauss))
    state = plain["numpy"]
    key = np.array(state["key"], dtype=np.uint32)
    np.random.set_state(  # noqa: NPY002
        ("MT19937", key, state["pos"], state["has_gauss"], state["gauss"])
    )


@contextlib.contextmanager
def preserved_rng() -> Iterator[None]:
    """Leave the global generators as they were: evaluating must not change what is trained."""
    tensors, plain = rng_tensors(), rng_plain()
    try:
        yield
    finally:
        restore_rng(tensors, plain)
