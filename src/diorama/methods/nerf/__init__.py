# SPDX-License-Identifier: Apache-2.0
"""Vanilla NeRF: coarse and fine MLPs, volume rendered."""
