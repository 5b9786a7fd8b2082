"""The two OpenAPI endpoints."""

import zlib

import orjson
import pytest

from sampan.api.errors import NotAcceptable
from sampan.api.resources import CONFIG_MAPS, LEASES, PODS
from sampan.api.schema.published import Schema
from sampan.apiserver.openapi.endpoints import PROTOBUF_V2, OpenApi

SCHEMA = Schema.load()
ASKED_V3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
ASKED_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def test_the_index_leads_to_every_group_version():
    """[A5]"""
    api = OpenApi(SCHEMA, [CONFIG_MAPS, LEASES])
    paths = orjson.loads(api.index().body())["paths"]
    assert list(paths) == [
        ".well-known/openid-configuration", "api", "api/v1", "apis", "apis/coordination.k8s.io",
        "apis/coordination.k8s.io/v1", "openid/v1/jwks", "version",
    ]  # fmt: skip
    group = orjson.loads(api.v3("apis/coordination.k8s.io").body())
    assert list(group["paths"]) == ["/apis/coordination.k8s.io/"]
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup" in group["components"]["schemas"]
    url = paths["api/v1"]["serverRelativeURL"]
    assert url == f"/openapi/v3/api/v1?hash={api.hash_of('api/v1')}"
    packed = api.v3("api/v1")
    assert orjson.loads(zlib.decompress(packed.gzip, 31))["openapi"] == "3.0.0"
    assert packed is api.v3("/api/v1/")
    assert api.v3("apis/nothing/v1") is None


def test_a_hash_follows_the_content():
    small, grown = OpenApi(SCHEMA, [CONFIG_MAPS]), OpenApi(SCHEMA, [CONFIG_MAPS, PODS, LEASES])
    assert small.hash_of("api/v1") != grown.hash_of("api/v1")
    assert small.hash_of("api/v1") == OpenApi(SCHEMA, [CONFIG_MAPS]).hash_of("api/v1")
    assert small.v2().etag != grown.v2().etag
    assert small.index().etag != small.v3("api/v1").etag


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "application/json"), ("application/json", "application/json"),
        ("*/*", "application/json"), (ASKED_V2, PROTOBUF_V2),
        (f"application/json;q=1,{ASKED_V2}", "application/json"),
        (f"{ASKED_V2},application/json", PROTOBUF_V2),
    ],
)  # fmt: skip
def test_the_form_of_version_2_is_negotiated(accept, content_type):
    packed = OpenApi(SCHEMA, [CONFIG_MAPS]).v2(accept)
    assert packed.content_type == content_type
    assert b"ConfigMap" in packed.body()


@pytest.mark.parametrize("accept", ["text/html", "application/yaml", "application/cbor"])
def test_what_there_is_not_is_refused(accept):
    made = OpenApi(SCHEMA, [CONFIG_MAPS])
    for ask in (made.v2, lambda wanted: made.v3("api/v1", wanted)):
        with pytest.raises(NotAcceptable):
            ask(accept)


def test_there_is_only_json_of_version_3():
    with pytest.raises(NotAcceptable):
        OpenApi(SCHEMA, [CONFIG_MAPS]).v3("api/v1", ASKED_V3)
    packed = OpenApi(SCHEMA, [CONFIG_MAPS]).v3("api/v1", f"{ASKED_V3}, application/json;q=0.5")
    assert packed.content_type == "application/json"
