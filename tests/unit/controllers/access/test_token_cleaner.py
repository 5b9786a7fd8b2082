from base64 import b64encode

from sampan.api.objects import time_text
from sampan.controllers.access.token_cleaner import plan
from sampan.controllers.actions import NOTHING, Delete

NOW = 1_700_000_000.0


def token(expiration=None):
    data = {} if expiration is None else {"expiration": b64encode(expiration.encode()).decode()}
    meta = {"name": "bootstrap-token-abcdef", "namespace": "kube-system", "uid": "u"}
    return {"type": "bootstrap.kubernetes.io/token", "metadata": meta, "data": data}


def test_a_token_goes_when_it_has_expired():
    for expired in (time_text(NOW - 1), time_text(NOW), "soon"):
        [gone] = plan(token(expired), NOW).actions
        assert isinstance(gone, Delete)
        assert gone.uid == "u"


def test_one_that_will_expire_is_looked_at_again_then():
    assert plan(token(time_text(NOW + 60)), NOW).again_seconds == 60


def test_one_without_an_end_stays():
    assert plan(token(), NOW) == NOTHING
