"""cmd/cluster/start_manifests.py: what is read at the start, and when it is ready."""

import pytest

from sampan.cmd.cluster.start_manifests import is_waited_for, read_manifests, what_is_missing
from sampan.cmd.errors import CannotStart

GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b", "no apiVersion"),
        ("apiVersion: v1", "no kind"),
        ("- 1", "not a mapping"),
        ("", "no object"),
        ("apiVersion: v1\nkind: Pod\n", "metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n\tname: x\n", "line 4: found character"),
        ('{"apiVersion": ', "unexpected EOF"),
    ],
)
def test_a_bad_manifest_is_one_sentence_that_names_its_file(tmp_path, text, words):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(CannotStart) as raised:
        read_manifests([str(path)])
    assert words in str(raised.value)
    assert "bad.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_not_there_and_what_is_elsewhere(tmp_path):
    with pytest.raises(CannotStart, match="does not exist"):
        read_manifests([str(tmp_path / "none.yaml")])
    with pytest.raises(CannotStart, match="download"):
        read_manifests(["https://example.com/x.yaml"])


def test_a_directory_is_read_whole_and_in_order(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.yaml").write_text(GOOD + "---\n" + GOOD.replace("c}", "d}"))
    (tmp_path / "b" / "c.json").write_text(
        '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}'
    )
    (tmp_path / "notes.txt").write_text("no manifest")
    found = read_manifests([str(tmp_path)])
    assert [obj["metadata"]["name"] for obj in found] == ["c", "d", "s"]


def condition(kind, status):
    return {"status": {"conditions": [{"type": kind, "status": status}]}, "metadata": {}}


@pytest.mark.parametrize(
    ("kind", "obj", "is_ready"),
    [
        ("Pod", {"status": {"phase": "Succeeded"}}, True),
        ("Pod", {"status": {"phase": "Pending"}}, False),
        ("Pod", condition("Ready", "True"), True),
        ("Job", condition("Complete", "True"), True),
        ("Job", {"status": {}}, False),
        ("CustomResourceDefinition", condition("Established", "True"), True),
        ("CustomResourceDefinition", {"status": {}}, False),
        (
            "Deployment",
            {
                "metadata": {"name": "d", "generation": 1},
                "spec": {"replicas": 1},
                "status": {
                    "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
                    "availableReplicas": 1,
                },
            },
            True,
        ),
        ("Deployment", {"metadata": {"name": "d", "generation": 1}, "spec": {}}, False),
        # Nobody can say when such a one is done.
        (
            "DaemonSet",
            {"metadata": {"name": "d"}, "spec": {"updateStrategy": {"type": "OnDelete"}}},
            True,
        ),
    ],
)  # fmt: skip
def test_what_runs_is_waited_for(kind, obj, is_ready):
    whole = {"metadata": {"name": "x"}, **obj, "kind": kind}
    assert is_waited_for(whole)
    assert (what_is_missing(whole) == "") == is_ready


def test_what_only_lies_there_is_not():
    assert not is_waited_for({"kind": "ConfigMap"})
