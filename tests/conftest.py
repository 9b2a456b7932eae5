# SPDX-License-Identifier: Apache-2.0
"""Settings that all tests share: reproducible examples, no time limits on a busy machine."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile("diorama", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("diorama")


@pytest.fixture(autouse=True)
def _same_threads_afterwards() -> Iterator[None]:
    """Undo a test's `torch.set_num_threads`: it would be felt by every later test."""
    num_threads = torch.get_num_threads()
    yield
    if torch.get_num_threads() != num_threads:
        torch.set_num_threads(num_threads)
