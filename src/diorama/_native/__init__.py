# SPDX-License-Identifier: Apache-2.0
"""Holds the compiled kernel modules, one per instruction set; `diorama.native` picks one.

`kernels.pyi` is the generated stub that all of them share.
"""
