from sampan.scheduler.cache.pod_table import NOWHERE, PodTable
from sampan.scheduler.model.assigned_pod import AssignedPod
from sampan.scheduler.model.requests import Usage


def pod(uid, cpu=1, priority=0):
    return AssignedPod(Usage((("cpu", cpu),), cpu, 0), priority, uid=uid)


def test_slots_are_given_back_and_grow():
    table = PodTable()
    for number in range(200):
        table.put(number % 7, pod(str(number), cpu=number))
    for number in range(0, 200, 2):
        table.remove(pod(str(number), cpu=number))
    for number in range(300, 400):
        table.put(3, pod(str(number), cpu=number))
    assert len(table) == 200
    assert len(table.node) == 256
    assert (table.node != NOWHERE).sum() == 200
    assert table.requests("cpu").sum() == sum(range(1, 200, 2)) + sum(range(300, 400))


def test_a_node_that_moves_takes_its_pods_along():
    table = PodTable()
    table.put(5, pod("a"))
    table.put(2, pod("b"))
    table.moved(5, 0)
    assert [one.uid for one in table.on(0)] == ["a"]
    assert [one.uid for one in table.on(2)] == ["b"]


def test_a_refresh_changes_what_no_rule_looks_at():
    table = PodTable()
    table.put(0, pod("a"))
    later = AssignedPod(Usage((("cpu", 1),), 1, 0), uid="a", started=7.0)
    table.refresh(later)
    table.refresh(pod("unknown"))
    assert table.started[0] == 7.0 or 7.0 in table.started
    [found] = table.on(0)
    assert found.started == 7.0
