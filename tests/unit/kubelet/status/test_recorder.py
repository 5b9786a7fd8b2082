"""Events in the node's name."""

from sampan.kubelet.status.recorder import ROUTINE, PodEvents
from tests.support.worlds.simulated_node import pod_named


class Kept:
    def __init__(self):
        self.told = []

    def record(self, about, kind, reason, message):
        self.told.append((about["kind"], about.get("fieldPath", ""), kind, reason))


def tell(events):
    pod = pod_named("web")
    events.normal(pod, "Started", "Container started", container="main")
    events.normal(pod, "SandboxChanged", "…")
    events.warning(pod, "Killing", "against its will")
    events.emit(pod, "Normal", "Pulled", "…", "main")


def test_an_event_names_the_container_that_it_is_about():
    kept = Kept()
    tell(PodEvents(kept))
    assert kept.told[0] == ("Pod", "spec.containers{main}", "Normal", "Started")
    assert len(kept.told) == 4


def test_what_every_pod_goes_through_can_be_left_out_but_no_warning_is():
    """[R3] a thousand simulated nodes tell only what is out of the ordinary."""
    kept = Kept()
    tell(PodEvents(kept, without=ROUTINE))
    assert [reason for *_, reason in kept.told] == ["SandboxChanged", "Killing"]
