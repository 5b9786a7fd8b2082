"""A page of the tour: its step, its measured spans, and what changed of the pod."""

from sampan.cmd.tour.lesson import lesson
from sampan.cmd.tour.pages import page, plain_lines, pod_lines, spans_of

STORE = next(step for step in lesson() if step.title == "The store")


def span(name, began=1.0, ended=1.5):
    return {"lane": "apiserver", "name": name, "began": began, "ended": ended, "facts": {}}


def pod(**status):
    meta = {"name": "tour-x", "namespace": "default", "uid": "u"}
    return {"metadata": meta, "spec": {}, "status": status}


def test_it_says_who_does_it_here_and_there_and_how_long_it_took():
    lines = page(STORE, 18, [span("store commit")], links=False)
    assert lines[0] == "7/18  The store"
    assert lines[2].startswith("  What is answered is kept")  # the idea comes before the files
    assert any("store/sqlite.py:" in line and "SqliteStore.create" in line for line in lines)
    assert any("storage/etcd3/store.go" in line for line in lines)
    assert any("500 ms" in line and "apiserver: store commit" in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_a_terminal_gets_links():
    lines = page(STORE, 18, [], links=True)
    assert any("\x1b]8;;file:///" in line for line in lines)


def test_only_the_spans_of_the_step_are_its_own_and_each_once():
    trace = {"spans": [span("validation"), span("store commit", 3.0), span("store commit", 2.0)]}
    assert spans_of(STORE, trace) == [span("store commit", 2.0)]
    assert spans_of(STORE, None) == []


def test_what_is_new_of_the_pod_is_marked():
    before = plain_lines(pod(phase="Pending"))
    assert all(line.startswith("  ") for line in pod_lines(pod(phase="Pending"), before))
    assert "+ phase: Running" in pod_lines(pod(phase="Running"), before)


def test_no_control_sequence_passes():
    hostile = {"lane": "kubelet\x1b[2J", "name": "start \x1b]0;x\x07", "began": 0, "ended": 1}
    lines = page(STORE, 18, [hostile], links=False) + pod_lines(pod(phase="\x1b[31mRunning"))
    assert not any(char < " " for line in lines for char in line)
