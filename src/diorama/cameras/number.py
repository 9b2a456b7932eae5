# SPDX-License-Identifier: Apache-2.0
"""A number as people type it: the shape checker does not take the integer 4 for a float."""

Number = float | int
