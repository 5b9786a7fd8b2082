"""The files behind --stages."""

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.stages import stage_controllers

STAGE = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: NAME}
spec: {resourceRef: {kind: Pod}, selector: {}, next: {delete: true}}
"""


def test_without_a_file_nobody_plays():
    assert stage_controllers(()) == ()


def test_files_and_directories_are_one_controllers(tmp_path):
    (tmp_path / "a.yaml").write_text(STAGE + "---\n" + STAGE.replace("NAME", "b"))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.yml").write_text(STAGE.replace("NAME", "c"))
    (tmp_path / "more" / "kustomization.yaml").write_text("kind: Kustomization\n")
    [controller] = stage_controllers([str(tmp_path / "a.yaml"), str(tmp_path / "more")])
    assert {resource.plural for resource in controller.wakes} == {
        "pods", "nodes", "customresourcedefinitions",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("a: [", "line 1: expected"),
        ("", "there is no Stage in it"),
        ("kind: Pod", "document 1: None, Pod is no Stage"),
        (STAGE.replace("delete", "remove"), "NAME: spec.next.remove: unknown field"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path, text, said):
    file = tmp_path / "s.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(CannotStart, match="--stages") as caught:
        stage_controllers([str(file)])
    assert said.lower() in str(caught.value).lower()
