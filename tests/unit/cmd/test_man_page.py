"""cmd/man_page.py: the man page says what docs/cli.md says."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sampan.cmd.man_page import page

DOCUMENT = Path(__file__).parents[3] / "docs" / "cli.md"
REQUESTS = {".TH", ".SH", ".SS", ".PP", ".TP", ".RS", ".RE", ".nf", ".fi", ".B"}
SHORT = """\
# Every verb

Made from `it`.

## A cluster

### up

Start a cluster.

    sampan up [flags]

Examples:

    .hidden \\ -x

- `-d`, `--data-dir` DIR where it is
- `--use`

After it.
"""


def test_markdown_becomes_roff():
    text = page(SHORT, "1.2")
    assert text.startswith('.TH SAMPAN 1 "" "sampan 1.2" "User Commands"\n.SH NAME\n')
    assert text.endswith(
        """\
.SH DESCRIPTION
Made from \\fBit\\fR.
.SH "A CLUSTER"
.SS "up"
Start a cluster.
.PP
.RS 4
.nf
sampan up [flags]

.fi
.RE
Examples:
.PP
.RS 4
.nf
\\&.hidden \\e \\-x

.fi
.RE
.TP
\\fB\\-d\\fR, \\fB\\-\\-data\\-dir\\fR
DIR where it is
.TP
\\fB\\-\\-use\\fR
.PP
After it.
"""
    )


def test_every_verb_and_flag_of_the_document_is_in_it():
    document = DOCUMENT.read_text()
    text = page(document, "1.2")
    for verb in re.findall(r"^### (.+)$", document, re.M):
        assert f'.SS "{verb}"'.replace("-", "\\-") in text
    flags = re.findall(r"^- .*?`(--[^`]+)`", document, re.M)
    assert len(flags) > 1000
    for flag in flags:
        assert "\\fB{}\\fR".format(flag.replace("-", "\\-")) in text
    used = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
    assert used == REQUESTS


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff to judge it")
def test_groff_has_no_complaint():
    text = page(DOCUMENT.read_text(), "1.2")
    done = subprocess.run(
        ["groff", "-man", "-Kutf8", "-ww", "-Tutf8", "-z", "-rLL=500n"],
        input=text, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
