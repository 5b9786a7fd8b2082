"""gRPC's status codes as values, without gRPC. Pure.

Job: the failure that both sides of a socket speak of, and how Go prints it.
"""

# Go spells one of them otherwise.
_SPELLINGS = {"CANCELLED": "Canceled", "OK": "OK"}


class GrpcFailure(Exception):
    """A call was answered with a failure, or not at all. `code` is gRPC's name for it."""

    def __init__(self, message: str, *, code: str, method: str = "") -> None:
        super().__init__(status_text(code, message))
        self.message, self.code, self.method = message, code, method


def code_name(code: str) -> str:
    """NOT_FOUND → NotFound."""
    return _SPELLINGS.get(code) or "".join(word.capitalize() for word in code.split("_"))


def status_text(code: str, message: str) -> str:
    """As Go's library prints an error, in statuses and events."""
    return f"rpc error: code = {code_name(code)} desc = {message}"
