# SPDX-License-Identifier: Apache-2.0
"""Instant-NGP: a hash-grid radiance field sampled through an occupancy grid."""
