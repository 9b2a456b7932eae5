# SPDX-License-Identifier: Apache-2.0
"""One parser per data set format; `diorama.data.load` chooses among them."""
