# SPDX-License-Identifier: Apache-2.0
"""One folder per method; `registry` knows their names without importing them."""
