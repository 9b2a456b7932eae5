# SPDX-License-Identifier: Apache-2.0
"""3-D Gaussian splatting (Kerbl et al. 2023), the taichi system's variant of it, and MCMC."""
