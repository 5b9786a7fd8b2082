"""Errors of an HTTP exchange, as its client sees them.

Job: one family for everything that goes wrong below a request.
"""

# Those that may be sent twice when a kept connection turns out to be dead (as net/http).
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})


class HttpError(ConnectionError):
    """There is no answer: no connection, a broken one, or something that is not HTTP."""


class AddressNotAllowed(HttpError):
    """This client may not connect there."""


class Unreachable(HttpError):
    """There is no connection: nothing was asked."""


class HttpTimeout(HttpError, TimeoutError):
    """There is no answer yet, and there was no more time."""


class DialTimeout(Unreachable, HttpTimeout):
    """There is no connection yet, and there was no more time."""


class Stale(HttpError):
    """A kept connection was closed before any byte of the answer came."""
