"""The figures of probes [N13, N20]."""

from sampan.kubelet.probes.finding import Probed
from sampan.kubelet.probes.results import FAILED, SUCCESSFUL, UNKNOWN, ProbeResults
from sampan.kubelet.probes.tally import Kind


def about(uid):
    pod = {"metadata": {"name": "web", "namespace": "shop", "uid": uid}}
    return Probed(pod, {"name": "main"}, f"container-{uid}", "10.0.0.1")


def test_results_are_counted_and_only_answers_are_timed():
    results = ProbeResults()
    for result in (SUCCESSFUL, SUCCESSFUL, FAILED, UNKNOWN):
        results.add(Kind.LIVENESS, about("u"), result, 0.02)
    text = results.render()
    labels = 'container="main",pod="web",namespace="shop",pod_uid="u"'
    assert f'prober_probe_total{{probe_type="Liveness",result="successful",{labels}}} 2' in text
    assert f'prober_probe_total{{probe_type="Liveness",result="failed",{labels}}} 1' in text
    labels = 'probe_type="Liveness",container="main",pod="web",namespace="shop"'
    assert f"prober_probe_duration_seconds_count{{{labels}}} 3" in text
    assert f'prober_probe_duration_seconds_bucket{{{labels},le="0.01"}} 0' in text
    assert f'prober_probe_duration_seconds_bucket{{{labels},le="0.025"}} 3' in text


def test_a_pod_that_is_forgotten_leaves_nothing():
    results = ProbeResults()
    results.add(Kind.READINESS, about("u"), SUCCESSFUL, 0.02)
    results.add(Kind.READINESS, about("u"), UNKNOWN, 0.02)
    results.forget("u")
    assert "web" not in results.render()
