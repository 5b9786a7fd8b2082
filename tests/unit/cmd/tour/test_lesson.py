"""The lesson is ARCHITECTURE.md's own text, and what stands beside it is true."""

import json

import pytest

from sampan.cmd.tour import lesson as module
from sampan.cmd.tour.lesson import PACKAGE, lesson, lesson_object, line_of, steps_of
from sampan.cmd.tour.originals import ORIGINALS


def test_every_step_of_the_document_has_its_original_and_no_other_has():
    assert [step.title for step in lesson()] == [original.title for original in ORIGINALS]
    assert [step.number for step in lesson()] == list(range(1, len(ORIGINALS) + 1))


@pytest.mark.parametrize("original", ORIGINALS, ids=lambda original: original.title)
def test_the_function_of_a_step_is_in_a_file_that_the_step_names(original):
    [step] = [step for step in lesson() if step.title == original.title]
    file, _, name = original.function.partition(":")
    assert any(file == named or file.startswith(named) for named in step.files)
    line = (PACKAGE / file).read_text().splitlines()[line_of(original.function) - 1]
    assert f"def {name.rpartition('.')[2]}(" in line


@pytest.mark.parametrize("original", ORIGINALS, ids=lambda original: original.title)
def test_an_idea_is_told_without_names_of_files(original):
    assert original.idea.endswith(".")
    assert "/" not in original.idea
    assert ".py" not in original.idea
    assert len(original.idea) > 60


def test_what_a_step_says_is_what_the_document_says():
    document = " ".join(module.architecture().split())
    for step in lesson():
        assert step.text in document


def test_a_document_with_a_step_that_nobody_knows_is_not_taught():
    with pytest.raises(KeyError):
        steps_of("## The way of a pod\n 1. **The unheard-of.** `core/` does it.\n")


def test_pages_get_it_as_json():
    steps = json.loads(json.dumps(lesson_object("")))["steps"]
    assert len(steps) == len(ORIGINALS)
    assert steps[0]["title"] == "The connection"
    assert steps[0]["idea"].startswith("Everything in Kubernetes goes through one door")
    assert steps[0]["function"] == "core/http/server.py:Server.start_on"
    assert steps[0]["original"]["url"].startswith("https://github.com/kubernetes/kubernetes/blob/")
    assert lesson_object("/x") is None
