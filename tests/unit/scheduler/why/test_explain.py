from sampan.scheduler.decision.decide import Refusal, Refused
from sampan.scheduler.why.explain import message, nobody_to_preempt, not_preempted


def said(refused):
    return message(refused, nobody_to_preempt(refused))


FULL = Refused(
    5,
    (
        Refusal("TaintToleration", (("node(s) had untolerated taint(s)", 2),), 2, 2),
        Refusal("NodeResourcesFit", (("Insufficient cpu", 3), ("Insufficient memory", 1)), 3, 1),
    ),
)


def test_the_message_is_upstreams():
    """[S5]"""
    assert said(FULL) == (
        "0/5 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint(s), "
        "3 Insufficient cpu. no new claims to deallocate, preemption: 0/5 nodes are available: "
        "2 No preemption victims found for incoming pod, 3 Preemption is not helpful for "
        "scheduling."
    )


def test_reasons_are_sorted_as_text():
    refused = Refused(12, (Refusal("NodeResourcesFit", (("Too many pods", 2), ("b", 10)), 12, 12),))
    assert said(refused).startswith("0/12 nodes are available: 10 b, 2 Too many pods. ")


def test_what_became_of_preemption_is_added():
    why = not_preempted(5, (("Insufficient cpu", 2), ("none", 0), ("a", 3)))
    assert message(FULL, why).endswith(
        ". no new claims to deallocate, preemption: 0/5 nodes are available: "
        "2 Insufficient cpu, 3 a."
    )


def test_a_pod_for_which_room_is_made_says_only_why():
    assert message(FULL).endswith("3 Insufficient cpu.")


def test_a_refusal_in_front_of_the_plugin_of_devices_ends_with_its_error():
    refused = Refused(3, (), beforehand='persistentvolumeclaim "c" not found', is_early=True)
    why = '0/3 nodes are available: persistentvolumeclaim "c" not found. not found'
    assert message(refused) == why


def test_a_refusal_of_the_pod_itself_counts_no_nodes():
    refused = Refused(3, (), beforehand='persistentvolumeclaim "c" not found')
    assert said(refused) == (
        '0/3 nodes are available: persistentvolumeclaim "c" not found. no new claims to '
        "deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for "
        "scheduling."
    )


def test_without_nodes_there_is_not_much_to_say():
    assert said(Refused(0, ())) == "no nodes available to schedule pods"
