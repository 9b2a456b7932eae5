# SPDX-License-Identifier: Apache-2.0
"""Measures the kernels against their references and against the machine's limits."""
