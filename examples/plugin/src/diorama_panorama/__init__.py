# SPDX-License-Identifier: Apache-2.0
"""Panorama: a scene that is infinitely far away, one colour per direction."""
