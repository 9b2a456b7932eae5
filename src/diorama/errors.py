# SPDX-License-Identifier: Apache-2.0
"""The one exception that means "the user can fix this"."""


class UserError(Exception):
    """A mistake the user can mend: one sentence that names the file or flag and the fix.

    Libraries raise it at the data, config and command-line borders; only `diorama.cli` turns it
    into a printed line and exit code 2.
    """
