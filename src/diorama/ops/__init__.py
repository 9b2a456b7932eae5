# SPDX-License-Identifier: Apache-2.0
"""Differentiable operations, one per file: the torch reference (the specification) and its kernel."""
