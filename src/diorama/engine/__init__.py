# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation of any Model: trainer, pipeline, optimisers, checkpoints, run folders."""
