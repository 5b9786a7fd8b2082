"""How a command that failed says so: kubectl's last words, as its CheckErr chooses them.

Job: from a failure to the text on standard error and the exit code.
Invariant: of several failures each has a line of its own, and none says `error:` for the others.
"""

from typing import TYPE_CHECKING

from sampan.api.errors import ApiError
from sampan.cli.errors import CliError, ConfigInvalid, FlagError, Plain, Quiet, Several, UsageError
from sampan.cli.session import Session

if TYPE_CHECKING:
    from sampan.client.blocking import NoAnswer

_THIS_MACHINE = ("localhost:", "127.0.0.1:")
_START_ONE = "`sampan list` shows your clusters; `sampan up --detach --use` starts one"


def report(session: Session, error: Exception) -> int:
    """Prints the failure as kubectl would, and gives its exit code."""
    _write_output(session, error)
    if isinstance(error, Several) and len(error.failures) == 1:
        [error] = error.failures
    if isinstance(error, ConfigInvalid):
        lines = [str(failure) for failure in error.failures]
        more = "".join(f"\n* {line}" for line in lines)
        text = f"Error in configuration: {lines[0] if len(lines) == 1 else more}"
    elif isinstance(error, Several):
        text = "".join(message_of(session, failure) + "\n" for failure in error.failures)
    else:
        text = _alone(session, error)
    if text:
        session.complain(text.removesuffix("\n"))
    return error.code if isinstance(error, CliError) else 1


def _write_output(session: Session, error: Exception) -> None:
    """What a failing template had written by then."""
    session.write(getattr(error, "output", ""))
    for failure in getattr(error, "failures", ()):
        _write_output(session, failure)


def _alone(session: Session, error: Exception) -> str:
    if isinstance(error, ApiError):
        return _invalid_text(error) if error.reason == "Invalid" else _status_text(error)
    text = message_of(session, error)
    if isinstance(error, FlagError):
        return f"error: {text}\nSee '{session.path} --help' for usage."
    is_said = isinstance(error, Plain | Quiet) or _no_answer(error) is not None
    return text if is_said or text.startswith("error: ") else f"error: {text}"


def message_of(session: Session, error: Exception) -> str:
    """One of several failures, or what stands in a larger sentence."""
    if isinstance(error, ApiError):
        return _status_text(error)
    if isinstance(error, Several):
        return aggregate_text([message_of(session, one) for one in error.failures])
    if (unanswered := _no_answer(error)) is not None:
        return _unreachable_text(session, unanswered)
    if isinstance(error, UsageError):
        return f"{error}\nSee '{session.path} -h' for help and examples"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{(error.strerror or str(error)).lower()}"
    return str(error)


def aggregate_text(texts: list[str]) -> str:
    """As Go's errors.Aggregate says itself: one is itself, several stand in brackets."""
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _no_answer(error: Exception) -> "NoAnswer | None":
    if not isinstance(error, ConnectionError):
        return None  # and TLS is not loaded to say so
    from sampan.client.blocking import NoAnswer

    return error if isinstance(error, NoAnswer) else None


def _unreachable_text(session: Session, error: "NoAnswer") -> str:
    host = error.server.split("://", 1)[-1]
    if not error.refused:
        return f"Unable to connect to the server: {error.why}"
    hint = "did you specify the right host or port?"
    text = f"The connection to the server {host} was refused - {hint}"
    is_here = session.program == "sampan" and host.startswith(_THIS_MACHINE)
    return f"{text}\n{_START_ONE}" if is_here else text


def _invalid_text(error: ApiError) -> str:
    kind, name = error.details.get("kind") or "", error.details.get("name") or ""
    causes = [
        f"{cause.get('field') or ''}: {cause.get('message') or ''}"
        for cause in error.details.get("causes") or []
    ]
    text = "The request is invalid"
    if kind or name:
        text = f'The {kind} "{name}" is invalid'
    elif error.message and not causes:
        text += f": {error.message}"
    unique = list(dict.fromkeys(causes))
    if len(unique) == 1:
        return f"{text}: {unique[0]}"
    if unique:
        return f"{text}: \n" + "\n".join(f"* {cause}" for cause in unique)
    return text


def _status_text(error: ApiError) -> str:
    if error.reason == "Unauthorized":
        return f"error: You must be logged in to the server ({error.message})"
    if error.reason:
        return f"Error from server ({error.reason}): {error.message}"
    return f"Error from server: {error.message}"
