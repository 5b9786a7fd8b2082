"""Findings as a person reads them, and as a program does. Pure."""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.cmd.cluster.table import table
from sampan.cmd.diagnosis.pod_diagnosis import Finding


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """A table, and what to do; nothing where nothing was found."""
    if not findings:
        return []
    rows = [(finding.where, finding.what, finding.why) for finding in findings]
    lines = ["", *table(("WHERE", "WHAT", "WHY"), rows)]
    advice = [f"  {finding.where}: {finding.advice}" for finding in findings if finding.advice]
    return [*lines, "", "What to do:", *advice] if advice else lines


def finding_objects(findings: Sequence[Finding]) -> list[Obj]:
    return [
        {"where": found.where, "what": found.what, "why": found.why, "advice": found.advice}
        for found in findings
    ]
