# SPDX-License-Identifier: Apache-2.0
"""How Gaussians multiply and die: strategies chosen by `--model.density`."""
