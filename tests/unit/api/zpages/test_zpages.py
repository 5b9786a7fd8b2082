"""/statusz and /flagz, as an original v1.35.8 and the sources of v1.37 have them."""

import orjson
import pytest
import yaml

from sampan.api import features
from sampan.api.errors import NotAcceptable
from sampan.api.features import Release
from sampan.api.zpages.zpages import ZPages
from sampan.core.http.messages import Request

GATES = {"ComponentStatusz": True, "ComponentFlagz": True}
STARTED = 1_795_053_569.5  # 2026-11-19T01:59:29Z
OF = "g=config.k8s.io"


def pages():
    paths = ("/metrics", "/metrics/slis", "/api", "/api/v1", "/readyz/ping", "/", "/openapi/v2")
    return ZPages("apiserver", STARTED, {"b": "", "a": "1"}, lambda: paths)


def asked(path, accept="", query="", agent=""):
    request = Request("GET", path, query, {"accept": accept, "user-agent": agent})
    return pages().reply(request, STARTED + 3723.9)


def test_they_are_there_where_their_gates_are_on():
    with features.used(Release("1.35")):
        assert asked("/statusz") is None
        assert asked("/flagz") is None
    with features.used(Release("1.37")):
        assert asked("/statusz").status == 200
        assert ZPages("x", 0.0).reply(Request("GET", "/flagz", "", {}), 1.0) is None
        assert asked("/statusz/") is None


@pytest.mark.parametrize("accept", ["", "text/plain", "*/*", "text/*;q=0.3, application/json"])
def test_people_get_text(accept):
    with features.used(Release("1.35", gates=GATES)):
        status, flags = asked("/statusz", accept), asked("/flagz", accept)
        number = features.release().git_version[1:]
    assert dict(status.headers)["content-type"] == "text/plain; charset=utf-8"
    lines = status.body.decode().split("\n")
    assert lines[1] == "apiserver statusz"
    assert lines[4:6] == ["Started: Thu Nov 19 01:59:29 UTC 2026", "Up: 1 hr 02 min 03 sec"]
    assert lines[7:] == [
        f"Binary version: {number}", "Emulation version: 1.35", "Paths: /metrics /readyz", ""
    ]  # fmt: skip
    assert flags.body.decode().endswith(" for debugging purposes only.\na=1\nb=\n")


def test_programs_get_an_object_if_they_name_it():
    with features.used(Release("1.37")):
        found = asked("/statusz", f"application/json;{OF};v=v1beta1;as=Statusz")
        flags = asked("/flagz", f"application/yaml;{OF};v=v1alpha1;as=Flagz")
        for accept in ("application/json", f"text/plain;{OF};v=v1beta1;as=Statusz",
                       f"application/json;{OF};v=v1beta1;as=Flagz",
                       f"application/json;{OF};v=v2;as=Statusz"):  # fmt: skip
            with pytest.raises(NotAcceptable, match=r"application/json, application/yaml, text/p"):
                asked("/statusz", accept)
    headers = dict(found.headers)
    assert headers["content-type"] == f"application/json;{OF};v=v1beta1;as=Statusz"
    assert "warning" not in headers
    told = orjson.loads(found.body)
    assert (told["kind"], told["apiVersion"]) == ("Statusz", "config.k8s.io/v1beta1")
    assert told["metadata"] == {"name": "apiserver"}
    assert (told["startTime"], told["uptimeSeconds"]) == ("2026-11-19T01:59:29Z", 3723)
    assert told["paths"] == ["/metrics", "/readyz"]
    assert "This version of the flagz endpoint is deprecated" in dict(flags.headers)["warning"]
    assert yaml.safe_load(flags.body)["flags"] == {"a": "1", "b": ""}


def test_v1_35_knows_the_alpha_version_alone():
    with features.used(Release("1.35", gates=GATES)):
        found = asked("/statusz", f"application/json;{OF};v=v1alpha1;as=Statusz", agent="curl/7")
        assert b"\n  " in found.body
        assert "warning" not in dict(found.headers)
        with pytest.raises(NotAcceptable, match="protobuf, text/plain"):
            asked("/statusz", f"application/json;{OF};v=v1beta1;as=Statusz")
