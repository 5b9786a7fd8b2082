"""`certificate approve|deny`: certificate signing requests.

Job: put the condition that signers wait for.
"""

from sampan.api.objects import Obj, time_text
from sampan.api.rules.conditions import find
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import selection
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def _decide(session: Session, values: Values, kind: str, word: str) -> None:
    printer = ObjectPrinter(values)
    names = list(values.arguments)
    if values["filename"]:
        for found in selection.from_files(session, values):
            if isinstance(found, Exception):
                raise found
            names.append(found.name)
    if not names:
        raise CliError("one or more CSRs must be specified as <name> or -f <filename>")
    for name in names:
        request = session.api.json("GET", f"{PATH}/{name}")
        request = _with_condition(session, request, kind, word, bool(values["force"]))
        request = session.api.json("PUT", f"{PATH}/{name}/approval", body=request)
        label = f"certificatesigningrequest.certificates.k8s.io/{name}"
        if printer.format:
            session.write(printer.text(request, label))
        else:
            session.print(f"{label} {word}")


def _with_condition(session: Session, request: Obj, kind: str, word: str, force: bool) -> Obj:
    status = dict(request.get("status") or {})
    conditions = list(status.get("conditions") or [])
    if find(conditions, kind) is not None and not force:
        return request
    moment = time_text(session.clock.now())
    reason = "KubectlApprove" if kind == "Approved" else "KubectlDeny"
    message = (
        f"This CSR was {word} by kubectl certificate {reason.removeprefix('Kubectl').lower()}."
    )
    conditions.append(
        {"type": kind, "status": "True", "reason": reason, "message": message,
         "lastUpdateTime": moment}
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
    from sampan.cli.command import help_text

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
