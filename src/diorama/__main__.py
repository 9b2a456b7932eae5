# SPDX-License-Identifier: Apache-2.0
"""Makes `python -m diorama` the same as `diorama`."""

import sys

from diorama.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
