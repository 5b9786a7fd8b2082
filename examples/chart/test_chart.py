"""What a chart makes becomes ready, an upgrade rolls, bad values are refused."""

import importlib.util
from pathlib import Path

import pytest

from sampan.api.errors import ApiError

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("chart", HERE / "chart.py")
chart = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(chart)


def test_it_installs_and_an_upgrade_rolls(sampan):
    sampan.apply(chart.render(HERE))
    sampan.assert_ready("deployment/web", timeout="60s")
    sampan.eventually(
        lambda: (
            sum(
                len(each.get("endpoints") or ())
                for each in sampan.list("endpointslices")
                if each["metadata"]["labels"].get("kubernetes.io/service-name") == "web"
            )
            == 2
        ),
        "the Service leads to both pods",
        "60s",
    )
    before = {*sampan.pods.names("app=web")}
    sampan.apply(chart.render(HERE, greeting="good evening", replicas=3))
    sampan.wait_for(
        "deployment/web",
        lambda found: (
            found is not None
            and found["status"].get("updatedReplicas") == 3
            and found["status"].get("availableReplicas") == 3
            and found["status"]["replicas"] == 3
        ),
        timeout="60s",
    )
    sampan.eventually(
        lambda: not before & {*sampan.pods.names("app=web")}, "the old pods are gone", "60s"
    )


@pytest.mark.parametrize("wrong", [{"name": "Not A Name"}, {"replicas": -1}])
def test_bad_values_are_refused(sampan_session, wrong):
    with pytest.raises(ApiError, match="Invalid|invalid"):
        sampan_session.apply(chart.render(HERE, **wrong))


def test_a_value_that_there_is_not_is_refused():
    with pytest.raises(KeyError, match="colour"):
        chart.render(HERE, colour="red")
