"""What kubectl looks at before it sends a manifest; the server validates the rest.

Job: refuse what has no kind or version, in kubectl's words.
"""

from sampan.cli.errors import CliError
from sampan.cli.objects.manifests import Manifest
from sampan.cli.session import Session
from sampan.client.blocking import NoAnswer
from sampan.core.patterns import lazy_pattern

IGNORE = "if you choose to ignore these errors, turn validation off with --validate=false"
_GROUP_VERSION = lazy_pattern(r"[^/]*/?[^/]*")


def validate(session: Session, manifest: Manifest) -> None:
    why = problem_of(manifest.obj)
    if not why:
        try:
            _ = session.discovery.resources
        except NoAnswer as error:
            what = error.text_for("GET", "/openapi/v2?timeout=32s")
            why = f"failed to download openapi: {what}"
    if why:
        raise CliError(
            f'error validating "{manifest.source}": error validating data: {why}; {IGNORE}'
        )


def problem_of(obj: object) -> str:
    if not isinstance(obj, dict):
        return "invalid object to validate"
    problems = []
    for name in ("apiVersion", "kind"):
        value = obj.get(name)
        if value is None:
            problems.append(f"{name} not set")
        elif not isinstance(value, str):
            problems.append(f"{name} isn't string type")
        elif name == "apiVersion" and not _GROUP_VERSION.fullmatch(value):
            problems.append(f"unexpected GroupVersion string: {value}")
    return f"[{', '.join(problems)}]" if len(problems) > 1 else "".join(problems)
