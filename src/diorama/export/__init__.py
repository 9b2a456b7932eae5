# SPDX-License-Identifier: Apache-2.0
"""What leaves Diorama: images, sheets, plots and videos."""
