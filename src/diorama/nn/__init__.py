# SPDX-License-Identifier: Apache-2.0
"""Network parts that more than one method uses."""
