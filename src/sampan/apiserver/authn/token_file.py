"""Static tokens: a CSV file of token, user, uid and groups.

Job: read the file's text; look a token up. Pure.
Invariant: how long a look-up takes says nothing about the tokens that exist.
"""

import csv
import hashlib
import io

from sampan.apiserver.authn.user import User


class BadTokenFile(ValueError):
    """The token file has a line that means nothing."""


class TokenFile:
    def __init__(self, text: str) -> None:
        """Raises BadTokenFile."""
        self._users: dict[bytes, User] = {}
        for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), 1):
            if not row or row[0].lstrip().startswith("#"):
                continue
            if len(row) < 3 or not row[0] or not row[1]:
                raise BadTokenFile(
                    f"token file, line {number}: it must have token, user name and user uid"
                )
            groups = tuple(part.strip() for part in row[3].split(",")) if len(row) > 3 else ()
            self._users[_digest(row[0])] = User(row[1], tuple(filter(None, groups)), row[2])

    def user(self, token: str) -> User | None:
        return self._users.get(_digest(token))


def _digest(token: str) -> bytes:
    # Compared by digest: a prefix that matches is found no sooner than any other.
    return hashlib.sha256(token.encode()).digest()
