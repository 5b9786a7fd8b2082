"""page.py: which blocks a reader pastes, and what counts as the same output."""

import pytest

from tests.pages.page import Command, PageError, is_reading, is_shown, pages, steps_of
from tests.pages.place import ROOT

PAGE = """\
# A page

Save this as `app/web.yaml`:

```yaml
kind: Pod
```

Then:

```console
$ cat > x <<EOF
> one
> EOF
$ sampan get pods
NAME   AGE
web    3s

$ true
```

*(needs the internet)*

```sh
one
two
```

An example, for the eye only:

```text
nothing
```
"""


def test_a_page_is_files_and_commands_in_order():
    file, console, script = steps_of(PAGE)
    assert (file.file, file.text) == ("app/web.yaml", "kind: Pod\n")
    assert [command.words for command in console.commands] == [
        "cat > x <<EOF\none\nEOF", "sampan get pods", "true",
    ]  # fmt: skip
    assert console.commands[1].output == ("NAME   AGE", "web    3s", "")
    assert script.commands[0].words == "one\ntwo"
    assert script.commands[0].output is None
    assert [step.needs for step in (file, console, script)] == ["", "", "needs the internet"]


def test_a_note_is_of_the_block_right_below_it():
    page = "*(needs the internet)*\n\n```sh\none\n```\n\nAnd:\n\n```sh\ntwo\n```\n"
    assert [step.needs for step in steps_of(page)] == ["needs the internet", ""]


@pytest.mark.parametrize(
    "page",
    ["```yaml\nkind: Pod\n```", "*(needs luck)*\n\n```sh\nx\n```", "```console\nno command\n```"],
)
def test_what_nobody_can_follow_is_refused(page):
    with pytest.raises(PageError):
        steps_of(page)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("1 passed in 1.52s", "1 passed in 75.80s (0:01:15)"),
        ("one\ntwo", "one\nW 12:19:50.78 core.telemetry.loop_watch: event loop held\ntwo"),
        ("web  1/1  Running  0  3s", "web 1/1   Running 0     1m12s"),
        ("web-7d9f8c6b5-x2x9z  Running", "web-6bdcc5f8f7-4hk2n  Running"),
        ("ready in 0.54 s", "ready in 12.30 s"),
        ("1 passed in 1.52s", "1 passed in 8.46s"),
        ("IP 10.244.0.5", "IP 10.244.12.77"),
        ("export KUBECONFIG=…/kubeconfig", "export KUBECONFIG=/tmp/x/kubeconfig"),
        ("a\n…\nd", "a\nb\nc\nd"),
        ("a\n\nb", "a\nb\n"),
    ],
)
def test_what_differs_from_run_to_run_is_the_same(shown, printed):
    assert is_shown(shown.splitlines(), printed.splitlines())


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("web 1/1 Running", "web 0/1 Pending"),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("a\n…\nd", "a\nb\nc"),
        ("3 pods", "4 pods"),
        ("web-1", "web-2"),
    ],
)
def test_what_is_different_is_different(shown, printed):
    assert not is_shown(shown.splitlines(), printed.splitlines())


@pytest.mark.parametrize(
    ("words", "reads"),
    [("sampan get pods", True), ("sampan logs hello", True), ("sampan snapshot diff a", True),
     ("sampan snapshot save a", False), ("sampan run hello", False), ("echo sampan get", False)],
)  # fmt: skip
def test_who_only_reads_may_ask_again(words, reads):
    assert is_reading(Command(words, (), 1)) is reads


@pytest.mark.parametrize("path", pages(ROOT), ids=lambda path: path.stem)
def test_every_page_can_be_followed(path):
    assert any(not step.needs for step in steps_of(path.read_text()))
