# SPDX-License-Identifier: Apache-2.0
"""Runs a kernel's tests once for every build of the kernels that this CPU can run."""

import pytest

from diorama import native


@pytest.fixture(params=native.runnable_builds() or ("none",))
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the build whose kernels serve during the test."""
    if request.param == "none":
        pytest.skip("the native kernels are not built")
    monkeypatch.setattr(native, "module", native.load(request.param))
    return request.param
