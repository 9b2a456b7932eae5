# SPDX-License-Identifier: Apache-2.0
"""Nerfacto: a hash-grid radiance field of a real capture, sampled through proposal networks."""
