# SPDX-License-Identifier: Apache-2.0
"""Differentiable operations, one per file: the torch reference, which specifies, and its kernel."""
