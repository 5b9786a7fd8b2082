"""The tool against a cluster of each test's own."""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location("unready", Path(__file__).with_name("unready.py"))
tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tool)

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "nginx:1"}]}
"""


def test_what_is_ready_is_not_named(sampan):
    sampan.apply(DEPLOYMENT)
    sampan.assert_ready("deployment/web", timeout="60s")
    with sampan.clients.kubernetes() as api:
        assert tool.unready(api) == []


def test_an_image_that_is_not_there(sampan):
    """A simulated registry has no image whose tag is `missing`."""
    sampan.apply(DEPLOYMENT.replace("nginx:1", "nginx:missing"))

    def reasons():
        with sampan.clients.kubernetes() as api:
            return [line.split(": ")[1] for line in tool.unready(api, "default")]

    sampan.eventually(
        lambda: (
            reasons()[:1] == ["0 of 2 ready"]
            and {*reasons()[1:]} & {"ErrImagePull", "ImagePullBackOff"}
        ),
        "both pods wait for their image",
        "60s",
    )
