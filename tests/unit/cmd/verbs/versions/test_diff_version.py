"""cmd/verbs/versions/diff_version.py: what another Kubernetes does with manifests."""

import io
import json
import sys

import pytest

from sampan.cmd.verbs.versions import diff_version

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: out}
spec: {externalIPs: [192.0.2.1], ports: [{port: 80}]}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: C}}
- {apiVersion: nobody.example/v1, kind: Thing, metadata: {name: t}}
"""


@pytest.mark.slow
def test_it_says_what_is_otherwise_and_what_it_could_not_compare(tmp_path, capsys):
    """[V4]"""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.yaml").write_text(SERVICE)
    (tmp_path / "notes.txt").write_text("not: a manifest")
    assert diff_version.run("1.35", "v1.36", [str(tmp_path)], as_json=False) == 0
    service, warning, summary, refused, unknown = capsys.readouterr().out.splitlines()
    assert (service, summary) == ("v1 Service out", "of 4 objects 1 are treated otherwise")
    assert warning.startswith("  warning of v1.36: spec.externalIPs is deprecated")
    assert refused.startswith('  refused by both: v1 ConfigMap C: ConfigMap "C" is invalid: ')
    assert unknown == "  not compared, nobody knows it: nobody.example/v1 Thing t"


@pytest.mark.slow
def test_what_breaks_is_an_exit_code_and_json_is_for_programs(monkeypatch, capsys):
    """[V4] a name that the older one does not take; from standard input"""
    text = b"{apiVersion: v1, kind: Service, metadata: {name: 1st}, spec: {ports: [{port: 1}]}}"
    for old, new, code, sort in (("1.36", "1.35", 1, "refused"), ("1.35", "1.36", 0, "accepted")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert diff_version.run(old, new, ["-"], as_json=True) == code
        [row] = json.loads(capsys.readouterr().out)
        assert (row["name"], row["differences"][0]["sort"]) == ("1st", sort)
        assert "DNS-1035" in row["differences"][0]["text"]


@pytest.mark.parametrize(
    ("old", "new", "content", "says"),
    [
        ("1.20", "1.37", "", "there is no Kubernetes 1.20 here"),
        ("1.35", "1.37", "a: 1", "an object without a kind"),
        ("1.35", "1.37", "a: [", "error parsing"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, capsys, old, new, content, says):
    file = tmp_path / "a.yaml"
    file.write_text(content)
    assert diff_version.run(old, new, [str(file)], as_json=False) == 2
    assert says in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said(capsys):
    assert diff_version.run("1.35", "1.37", ["/nix/a.yaml"], as_json=False) == 2
    assert "/nix/a.yaml: " in capsys.readouterr().err
