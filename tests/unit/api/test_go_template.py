"""Go templates: what Go's own text/template (1.25, with kubectl's two functions) made of them."""

import json
from pathlib import Path

import pytest

from sampan.api.go_template.execution import Template
from sampan.api.go_template.parser import TemplateError

LINES = (Path(__file__).parent / "recorded" / "go_template.jsonl").read_text().splitlines()
DATA = json.loads(LINES[0])["data"]
CASES = [json.loads(line) for line in LINES[1:]]


def done(case):
    try:
        template = Template(case["template"], allow_missing=not case.get("missing"))
    except TemplateError as error:
        return {"perr": str(error)}
    written, why = template.execute(DATA)
    return {"out": written, **({"err": why} if why else {})}


@pytest.mark.slow
def test_a_template_does_what_go_does_with_it():
    different = [
        (case, ours)
        for case in CASES
        if (ours := done(case)) != {key: case[key] for key in ("out", "err", "perr") if key in case}
    ]
    assert not different


def test_templates_that_call_themselves_end():
    text = '{{define "r"}}x{{template "r" .}}{{end}}{{template "r" .}}'
    written, why = Template(text).execute({})
    assert "exceeded maximum template depth" in why
    assert written.startswith("xxx")
