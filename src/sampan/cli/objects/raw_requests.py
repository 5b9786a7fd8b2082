"""`--raw`: a path of the server as it is, with a file as the body.

Job: check what does not go with it, send, print the answer as it comes.
"""

from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.session import Session
from sampan.core.patterns import lazy_pattern

_URL = lazy_pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


def check_file(values: Values) -> None:
    names = values["filename"]
    if names and names[0].startswith(("http://", "https://")):
        raise CliError("--raw cannot read from a url")
    if values["recursive"]:
        raise CliError("--raw and --recursive are mutually exclusive")


def check_path(path: str) -> None:
    """As Go's url.ParseRequestURI."""
    if path and not path.startswith("/") and not _URL.match(path):
        raise CliError(f'--raw must be a valid URL path: parse "{path}": invalid URI for request')


def send(session: Session, method: str, values: Values) -> None:
    content = None
    if values["filename"]:
        name = values["filename"][0]
        try:
            content = session.io.stdin.read() if name == "-" else _read(name)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CliError(f"open {name}: {why}") from error
    answer = session.api.ask(method, values.text("raw"), body=content, raw=True)
    session.write(answer.body.decode(errors="replace"))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
