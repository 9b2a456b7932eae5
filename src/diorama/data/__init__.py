# SPDX-License-Identifier: Apache-2.0
"""From files on disk to a Scene, and from a Scene to batches of rays."""
