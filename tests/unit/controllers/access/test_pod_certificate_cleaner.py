from sampan.api.objects import time_text
from sampan.api.resources import POD_CERTIFICATE_REQUESTS
from sampan.controllers.access.pod_certificate_cleaner import plan
from sampan.controllers.actions import Delete, Plan


def test_a_request_lives_for_a_quarter_of_an_hour():
    meta = {"name": "r", "namespace": "default", "uid": "u", "creationTimestamp": time_text(1000.0)}
    request = {"metadata": meta}
    assert plan(POD_CERTIFICATE_REQUESTS, request, 1100.0) == Plan(again_seconds=800.0)
    [gone] = plan(POD_CERTIFICATE_REQUESTS, request, 1900.0).actions
    assert isinstance(gone, Delete)
    assert (gone.name, gone.uid) == ("r", "u")
