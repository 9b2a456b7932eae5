# SPDX-License-Identifier: Apache-2.0
"""A package, so that tests can share code as `tests.ops.parity`."""
