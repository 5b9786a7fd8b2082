from typing import ClassVar

from sampan.api.rules.node_selectors import Requirement, Requirements
from sampan.scheduler.cache import pod_columns
from sampan.scheduler.cache.pod_columns import PodColumns
from sampan.scheduler.model.assigned_pod import assigned_pod_of
from sampan.scheduler.model.pod_terms import Kind, PodSelector


class Compared(Kind):
    """Notes who was compared with it."""

    seen: ClassVar[list[str]] = []

    def includes(self, namespace, namespace_labels, labels):
        Compared.seen.append(labels.get("app", ""))
        return super().includes(namespace, namespace_labels, labels)


def kind(app):
    asked = Requirements([Requirement("app", "In", (app,))] if app else [])
    return Compared((PodSelector(frozenset({"default"}), None, asked),))


def pod(app):
    return assigned_pod_of({
        "metadata": {"name": app, "namespace": "default", "uid": app, "labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })  # fmt: skip


def test_a_pod_is_compared_with_those_who_ask_for_its_labels():
    columns = PodColumns(lambda: (), 4)
    for number in range(100):
        columns.count(kind(f"app-{number}"))
    columns.count(kind(""))  # everything
    Compared.seen.clear()
    columns.take(2, pod("app-7"), 1)
    assert Compared.seen == ["app-7", "app-7"]
    assert columns.count(kind("app-7")).tolist() == [0, 0, 1, 0]
    assert columns.count(kind("")).tolist() == [0, 0, 1, 0]
    assert columns.count(kind("app-8")).tolist() == [0, 0, 0, 0]


def test_what_was_forgotten_is_counted_anew(monkeypatch):
    monkeypatch.setattr(pod_columns, "MOST_COUNTS", 2)
    there = [(1, pod("a"))]
    columns = PodColumns(lambda: there, 4)
    for app in ("a", "b", "c"):
        columns.count(kind(app))
    columns.take(1, pod("a"), 1)  # nobody counts it now
    there.append((1, pod("a")))
    assert columns.count(kind("a")).tolist() == [0, 2, 0, 0]


def test_a_term_of_thousands_of_namespaces_is_found_without_an_entry_for_each():
    columns = PodColumns(lambda: (), 4)
    names = [f"n{number}" for number in range(50_000)]
    near = {"topologyKey": "zone", "namespaces": names, "labelSelector": {}}
    carrier = assigned_pod_of({
        "metadata": {"name": "a", "namespace": "default", "uid": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [near]}}},
    })  # fmt: skip
    columns.take(1, carrier, 1)
    [carried] = columns.carried_towards("n49999")
    assert carried.term.selector.matches("n49999", {}, {})
    # Others are asked, too, and find that they are not meant.
    assert list(columns.carried_towards("other")) == [carried]
    assert not carried.term.selector.matches("other", {}, {})
    columns.take(1, carrier, -1)
    assert not columns.carried_towards("n49999")
