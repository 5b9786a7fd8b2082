import zlib

import orjson
import pytest

from sampan.api.calls import Item
from sampan.api.errors import NotAcceptable, UnsupportedMediaType
from sampan.apiserver.http.negotiate import (
    PROTOBUF,
    Form,
    ListPieces,
    body_media,
    form_of,
    full_form,
    gzip_bytes,
    gzip_wanted,
    list_head,
    patch_type,
)
from sampan.core.http.messages import STEP_BYTES
from sampan.core.http.written_forms import JSON, YAML, written

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json, */*", Form()),
        ("application/yaml", Form(YAML)),
        (f"{PROTOBUF},{JSON}", Form()),
        (f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,{JSON}",
         Form(JSON, "Table", "v1")),
        ("application/json;as=Other;v=v1;g=meta.k8s.io,application/json", Form()),
        ("application/json; as=PartialObjectMetadata; v=v1; g=meta.k8s.io",
         Form(JSON, "PartialObjectMetadata", "v1")),
        ("application/json;stream=watch", Form()),
    ],
)  # fmt: skip
def test_the_first_form_that_we_have_is_taken(accept, form):
    assert form_of(accept) == form


def test_protobuf_comes_last():
    assert form_of(PROTOBUF) == Form(PROTOBUF)
    assert form_of(f"{PROTOBUF},application/json") == Form()


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Other"])
def test_nothing_acceptable_is_said_so(accept):
    with pytest.raises(NotAcceptable, match="only the following media types are accepted"):
        form_of(accept)


def test_the_query_has_a_say_in_the_form():
    assert full_form("", "pretty=true").pretty
    assert not full_form("", "pretty=false").pretty
    assert full_form(TABLE, "includeObject=Object").include == "Object"


def test_bodies_and_patches_by_their_content_type():
    assert body_media("") == JSON
    assert body_media("application/json; charset=utf-8") == JSON
    assert body_media("text/yaml") == YAML
    assert body_media(PROTOBUF) == PROTOBUF
    assert patch_type("application/merge-patch+json; charset=utf-8", is_custom=True) == "merge"
    assert patch_type("application/strategic-merge-patch+json", is_custom=False) == "strategic"
    with pytest.raises(UnsupportedMediaType):
        body_media("text/plain")
    with pytest.raises(UnsupportedMediaType, match="415: Unsupported Media Type"):
        patch_type("application/json", is_custom=False)
    with pytest.raises(UnsupportedMediaType, match=r"json-patch\+json, application/merge-patch"):
        patch_type("application/strategic-merge-patch+json", is_custom=True)


def test_a_list_is_joined_from_its_items():
    items = [Item(name, 1, {}, orjson.dumps({"name": name})) for name in "ab"]
    head = list_head("PodList", "v1", 7, "token", 3)
    assert orjson.loads(b"".join(ListPieces(head, items))) == {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "continue": "token", "remainingItemCount": 3},
        "items": [{"name": "a"}, {"name": "b"}],
    }
    empty = ListPieces(list_head("PodList", "v1", 7, "", None), [])
    assert orjson.loads(b"".join(empty))["items"] == []


@pytest.mark.parametrize("sizes", [[10] * 5000, [400_000, 3, 400_000], [1_000_000], [], [7]])
def test_a_long_list_comes_in_pieces(sizes):
    items = [Item("a", 1, {}, orjson.dumps({"x": "x" * size})) for size in sizes]
    pieces = ListPieces(list_head("PodList", "v1", 7, "", None), items)
    whole = b"".join(pieces)
    assert abs(pieces.about_bytes - len(whole)) <= len(items) + 3
    assert [len(one["x"]) for one in orjson.loads(whole)["items"]] == sizes
    assert max(map(len, pieces)) <= max([2 * STEP_BYTES, *(size + 200 for size in sizes)])


def test_only_large_answers_are_compressed_and_come_back_whole():
    assert not gzip_wanted("gzip", 1000)
    assert not gzip_wanted("deflate", 1_000_000)
    assert gzip_wanted("deflate, gzip", 128 * 1024)
    assert zlib.decompress(gzip_bytes(b"x" * 1000), 31) == b"x" * 1000


def test_yaml_quotes_what_would_not_be_text():
    assert written({"a": "2026-01-01", "b": "yes"}, YAML) == b"a: '2026-01-01'\nb: 'yes'\n"
