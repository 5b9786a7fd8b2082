"""What can end a command, and what is printed then.

Job: one class per form of kubectl's last words on standard error.
Invariant: whoever raises one of these says what happened; a traceback is a bug.
"""


class CliError(Exception):
    """`error: MESSAGE`, exit code 1."""

    code = 1


class UsageError(CliError):
    """Arguments that do not go together: the message, then where the help is."""


class FlagError(CliError):
    """A flag that does not parse: the message, then how to see the usage."""


class Plain(CliError):
    """The message as it is, without `error:` before it."""


class Quiet(CliError):
    """Nothing more to say: only the exit code."""

    def __init__(self, code: int = 1, message: str = "") -> None:
        super().__init__(message)
        self.code = code


class Several(CliError):
    """Failures of several objects, each printed as if it were alone."""

    def __init__(self, failures: "list[Exception]") -> None:
        super().__init__("; ".join(str(failure) for failure in failures))
        self.failures = failures


class ConfigInvalid(Several):
    """Everything that is wrong with the context that was chosen."""


def raise_all(failures: "list[Exception]") -> None:
    """What a visit of several objects met with: one failure is raised as it is."""
    if len(failures) > 1:
        raise Several(failures)
    if failures:
        raise failures[0]
