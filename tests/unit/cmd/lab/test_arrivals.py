"""When which pod comes."""

from sampan.cmd.lab.arrivals import EXIT_ANNOTATION, STREAM_LABEL, arrivals
from sampan.cmd.lab.workload import RecordedPod, Span, Stream, Variant, Workload


def stream(name="s", count=3, **words):
    variants = words.pop("variants", (Variant(duration=Span("fixed", 60)),))
    return Stream(name, count, variants, **words)


def test_arrivals_are_in_their_order_and_named():
    found = arrivals(
        Workload((stream("a", 2, gap=Span("fixed", 10)), stream("b", 1, start_seconds=5)))
    )
    assert [(each.at_seconds, each.object["metadata"]["name"]) for each in found] == [
        (0, "a-0"), (5, "b-0"), (10, "a-1"),
    ]  # fmt: skip


def test_a_pod_has_what_its_variant_asks_for():
    variant = Variant(
        requests={"cpu": "2", "example.com/gpu": "1"}, duration=Span("fixed", 90),
        priority_class="high", template={"metadata": {"labels": {"app": "x"}},
                                         "spec": {"nodeSelector": {"disk": "ssd"}}},
    )  # fmt: skip
    [arrival] = arrivals(Workload((stream(count=1, variants=(variant,)),)))
    pod = arrival.object
    assert pod["metadata"]["labels"] == {"app": "x", STREAM_LABEL: "s"}
    assert pod["metadata"]["annotations"] == {EXIT_ANNOTATION: "90.000"}
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["priorityClassName"] == "high"
    [container] = pod["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "2", "example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"},
    }  # fmt: skip


def test_a_job_comes_back_and_never_ends_by_the_rule_for_jobs():
    endless = stream(count=1, kind="Job", variants=(Variant(),))
    [arrival] = arrivals(Workload((endless,)))
    assert arrival.resource.plural == "jobs"
    template = arrival.object["spec"]["template"]
    assert template["metadata"]["annotations"] == {EXIT_ANNOTATION: "never"}
    assert template["spec"]["restartPolicy"] == "Never"


def test_a_seed_repeats_itself_and_streams_do_not_disturb_each_other():
    variants = (Variant(1, {"cpu": "1"}, Span("exponential", 60)), Variant(1, {"cpu": "8"}))
    first = stream("a", 20, gap=Span("exponential", 10), variants=variants)
    alone = arrivals(Workload((first,), seed=7))
    assert alone == arrivals(Workload((first,), seed=7))
    assert alone != arrivals(Workload((first,), seed=8))
    beside = arrivals(Workload((stream("b", 5), first), seed=7))
    own = [each for each in beside if each.object["metadata"]["name"].startswith("a-")]
    assert own == alone


def test_what_was_recorded_comes_when_it_came():
    pod = RecordedPod("x", "shop", 12.5, None, {"spec": {"containers": [{"name": "main"}]}})
    [arrival] = arrivals(Workload(pods=(pod,)))
    assert arrival.at_seconds == 12.5
    assert arrival.object["metadata"]["namespace"] == "shop"
    assert arrival.object["spec"]["containers"][0]["name"] == "main"
    assert "restartPolicy" not in arrival.object["spec"]
