"""`certificate approve|deny`: certificate signing requests.

Job: put the condition that signers wait for.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, time_text
from sampan.api.rules.conditions import find
from sampan.cli import common_flags
from sampan.cli.command import Command, help_text
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, raise_all
from sampan.cli.flags import Values
from sampan.cli.objects import changing, manifests
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CONFLICT_TRIES = 10


def _decide(session: Session, values: Values, kind: str, word: str) -> None:
    printer = ObjectPrinter(values)
    _ = session.connection
    if not values.arguments and not manifests.has_files(values):
        raise CliError("one or more CSRs must be specified as <name> or -f <filename>")
    builder = Builder(session, continue_on_error=True).files(values)
    builder.names("certificatesigningrequests", values.arguments)
    builder.requires_namespace, builder.latest = False, True
    failures: list[Exception] = []
    count = 0
    for found in builder.do().visit():
        try:
            if isinstance(found, Exception):
                raise found
            _decide_one(session, values, found, kind)
            count += 1
        except (ApiError, CliError) as error:
            failures.append(error)
            continue
        changing.show(session, printer, found, found.obj, word, "none")
    raise_all(failures)
    if not count:
        session.print("No resources found")


def _decide_one(session: Session, values: Values, found: Info, kind: str) -> None:
    own = found.resource
    if (own.group, own.kind) != ("certificates.k8s.io", "CertificateSigningRequest"):
        got = f"{own.kind}.{own.group}" if own.group else own.kind
        wanted = "CertificateSigningRequest.certificates.k8s.io"
        raise CliError(f"can only handle {wanted} objects, got {got}")
    for attempt in range(CONFLICT_TRIES + 1):
        request = session.api.json("GET", f"{PATH}/{found.name}")
        after = _with_condition(session, request, kind, bool(values["force"]))
        if after is None:
            return
        try:
            session.api.json("PUT", f"{PATH}/{found.name}/approval", body=after)
            return
        except ApiError as error:
            if error.reason != "Conflict" or attempt == CONFLICT_TRIES:
                raise


def _with_condition(session: Session, request: Obj, kind: str, force: bool) -> Obj | None:
    """None where it has the condition, and nobody insists."""
    status = dict(request.get("status") or {})
    conditions = list(status.get("conditions") or [])
    other = "Denied" if kind == "Approved" else "Approved"
    if find(conditions, other) is not None:
        raise CliError(
            f'certificate signing request "{request["metadata"]["name"]}" is already {other}'
        )
    if find(conditions, kind) is not None:
        return request if force else None
    reason, word = ("KubectlApprove", "approve") if kind == "Approved" else ("KubectlDeny", "deny")
    message = f"This CSR was {kind.lower()} by kubectl certificate {word}."
    conditions.append(
        {"type": kind, "status": "True", "reason": reason, "message": message,
         "lastUpdateTime": time_text(session.clock.now())}
    )  # fmt: skip
    return {**request, "status": {**status, "conditions": conditions}}


def approve(session: Session, values: Values) -> None:
    _decide(session, values, "Approved", "approved")


def deny(session: Session, values: Values) -> None:
    _decide(session, values, "Denied", "denied")


_FLAGS = (
    *PRINT_FLAGS, *common_flags.FILES,
    switch("force", "Update the CSR even if it is already approved or denied."),
)  # fmt: skip


def show_help(session: Session, values: Values) -> None:
    session.write(help_text(CERTIFICATE, session.program, session.path))


CERTIFICATE = Command(
    "certificate",
    "certificate SUBCOMMAND [options]",
    "Modify certificate resources.",
    show_help,
    (),
    (
        Command("approve", "certificate approve (-f FILENAME | NAME) [options]",
                "Approve a certificate signing request", approve, _FLAGS),
        Command("deny", "certificate deny (-f FILENAME | NAME) [options]",
                "Deny a certificate signing request", deny, _FLAGS),
    ),
)  # fmt: skip
