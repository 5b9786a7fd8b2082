"""Pulls from registries: one that works, and ones that cut, lie, never end or want a login."""

import asyncio
import base64
import json

import pytest

from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response, Stream
from sampan.core.http.server import Server
from sampan.core.tasks import all_of
from sampan.runtime.images import manifests, registry
from sampan.runtime.images.content import ContentStore, ImageError, digest_of
from sampan.runtime.images.hosts import Host
from sampan.runtime.images.image_store import ImageStore
from sampan.runtime.images.registry import Puller, Wanted
from sampan.runtime.images.registry_client import ImageMissing, Login

LAYER = b"layer " * 1000
CONFIG = json.dumps({"architecture": "amd64", "rootfs": {"diff_ids": [digest_of(LAYER)]}}).encode()


def said(kind, data):
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}


MANIFEST = json.dumps({
    "schemaVersion": 2,
    "mediaType": manifests.OCI_MANIFEST,
    "config": said("application/vnd.oci.image.config.v1+json", CONFIG),
    "layers": [said("application/vnd.oci.image.layer.v1.tar", LAYER)],
}).encode()  # fmt: skip
INDEX = json.dumps({
    "schemaVersion": 2,
    "manifests": [
        said(manifests.OCI_MANIFEST, MANIFEST)
        | {"platform": {"os": "linux", "architecture": "amd64"}}
    ],
}).encode()  # fmt: skip


class FakeRegistry:
    """What it serves by path; `behaviour` may answer first."""

    def __init__(self, behaviour=None):
        self.files = {
            "/v2/team/app/manifests/1": INDEX,
            f"/v2/team/app/manifests/{digest_of(MANIFEST)}": MANIFEST,
            f"/v2/team/app/blobs/{digest_of(CONFIG)}": CONFIG,
            f"/v2/team/app/blobs/{digest_of(LAYER)}": LAYER,
        }
        self.behaviour, self.came = behaviour, []
        self.requests, self.seen = [], []

    async def answer(self, request):
        self.requests.append(request)
        self.seen.append((request.path, dict(request.headers)))
        special = self.behaviour(self, request) if self.behaviour else None
        if special is not None:
            return special
        data = self.files.get(request.path)
        if data is None:
            return Response(404, (), b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no"}]}')
        return Response(200, (("content-type", "application/octet-stream"),), data)


def pull(tmp_path, behaviour=None, *, login=None, name="app", tag="1", mirrored=False):
    """(the fake registry, the store, the manifest)"""
    fake = FakeRegistry(behaviour)
    store = ImageStore(tmp_path / "images")

    async def story():
        server = Server(fake.answer, clock=SystemClock(), name="registry")
        port = await server.start("127.0.0.1", 0)
        fake.url = f"http://127.0.0.1:{port}"
        host = "127.0.0.1:1" if mirrored else f"127.0.0.1:{port}"
        hosts = [*([Host(f"{fake.url}/v2")] if mirrored else []), Host(f"http://{host}/v2")]
        try:
            with store.claims.claiming() as claim:
                puller = Puller(store, "amd64", claim, SystemClock(), fake.came.append)
                wanted = Wanted(f"team/{name}:{tag}", host, f"team/{name}", tag)
                return await puller.pull(wanted, hosts, login)
        finally:
            await server.stop(0)

    return fake, store, asyncio.run(story())


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(registry, "_FIRST_WAIT_SECONDS", 0.001)


def test_an_image_comes_whole(tmp_path):
    _, store, manifest = pull(tmp_path)
    assert manifest.digest == digest_of(MANIFEST)
    assert store.content.digests() == {digest_of(part) for part in (MANIFEST, CONFIG, LAYER)}
    assert store.put("team/app:1", manifest).config.diff_ids == (digest_of(LAYER),)


def test_a_mirror_is_asked_first(tmp_path):
    fake, _, _ = pull(tmp_path, mirrored=True)
    assert fake.requests


def test_what_is_not_there_and_what_is_not_allowed_are_said(tmp_path):
    with pytest.raises(ImageMissing, match="not found"):
        pull(tmp_path, tag="2")
    with pytest.raises(ImageMissing, match="pull access denied"):
        pull(tmp_path, lambda fake, request: Response(403, (), b""))


def test_bytes_that_are_not_those_of_the_digest_are_refused(tmp_path):
    def lie(fake, request):
        if request.path.endswith(digest_of(LAYER)):
            return Response(200, (), LAYER[:-1] + b"!")
        return None

    with pytest.raises(ImageError, match="digest verification"):
        pull(tmp_path, lie)
    assert digest_of(LAYER) not in ImageStore(tmp_path / "images").content.digests()
    assert list((tmp_path / "images" / "incoming").iterdir()) == []


def test_a_layer_that_never_ends_is_cut_off(tmp_path):
    async def endless():
        while True:
            yield b"x" * 65536

    def lie(fake, request):
        if request.path.endswith(digest_of(LAYER)):
            return Stream(200, (), endless())
        return None

    with pytest.raises(ImageError, match="larger than"):
        pull(tmp_path, lie)


def is_layer(request):
    return request.path.endswith(digest_of(LAYER))


def begin_of(request):
    return int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))


def cut_after(size, *, begins_again=False):
    """So much of it comes each time; a registry that does not know ranges begins again."""

    async def some(begin):
        yield LAYER[begin : begin + size]
        raise ConnectionResetError

    def cut(fake, request):
        if not is_layer(request):
            return None
        begin = 0 if begins_again else begin_of(request)
        return Stream(206 if begin else 200, (), some(begin))

    return cut


def test_what_was_cut_off_goes_on_where_it_was(tmp_path):
    """However often: there is an end to it only where nothing more comes."""
    fake, _, manifest = pull(tmp_path, cut_after(500))
    assert manifest.digest == digest_of(MANIFEST)
    begins = [begin_of(request) for request in fake.requests if is_layer(request)]
    assert begins == list(range(0, len(LAYER), 500))


def test_a_registry_that_always_cuts_at_the_same_place_is_given_up(tmp_path):
    with pytest.raises(ImageError, match="broke off after 2000 of 6000 bytes"):
        pull(tmp_path, cut_after(2000, begins_again=True))
    assert digest_of(LAYER) not in ImageStore(tmp_path / "images").content.digests()


def test_the_next_process_goes_on_where_the_last_one_was(tmp_path):
    with pytest.raises(ImageError):
        pull(tmp_path, cut_after(2000, begins_again=True))
    fake, _, _ = pull(
        tmp_path, lambda fake, request:
        Response(206, (), LAYER[begin_of(request) :]) if is_layer(request) else None
    )  # fmt: skip
    assert [begin_of(request) for request in fake.requests if is_layer(request)] == [2000]


def test_what_the_last_process_left_may_be_damaged(tmp_path):
    with pytest.raises(ImageError):
        pull(tmp_path, cut_after(2000, begins_again=True))
    (left,) = (tmp_path / "images" / "incoming").iterdir()
    left.write_bytes(bytes(2000))
    _, store, _ = pull(
        tmp_path, lambda fake, request:
        Response(206, (), LAYER[begin_of(request) :]) if is_layer(request) else None
    )  # fmt: skip
    assert store.content.path(digest_of(LAYER)).read_bytes() == LAYER


def test_a_layer_that_drips_is_given_up(tmp_path, monkeypatch):
    """A few bytes now and then would be years."""
    monkeypatch.setattr(registry, "STALL_SECONDS", 0.03)

    async def drip():
        while True:
            yield b""
            await asyncio.sleep(0.01)

    def slow(fake, request):
        return Stream(200, (), drip()) if is_layer(request) else None

    with pytest.raises(ImageError, match="broke off after 0 of 6000"):
        pull(tmp_path, slow)
    assert list((tmp_path / "images" / "incoming").iterdir()) == []


REFUSALS = {
    404: (ImageMissing, "not found"),
    403: (ImageMissing, "pull access denied.*denied: not yours"),
    429: (ImageError, "Too Many Requests.*denied: not yours.*mirror.*30 s"),
    418: (ImageError, "unexpected status from the registry: 418"),
    503: (ImageError, "unexpected status from the registry: 503"),
}


@pytest.mark.parametrize("status", sorted(REFUSALS))
@pytest.mark.parametrize("of", ["manifests", "blobs"])
def test_each_refusal_is_explained(tmp_path, status, of):
    body = b'{"errors": [{"code": "DENIED", "message": "not yours"}]}'

    def refuse(fake, request):
        if f"/{of}/" in request.path:
            return Response(status, (("retry-after", "30"),), body)
        return None

    kind, sentence = REFUSALS[status]
    with pytest.raises(kind, match=sentence):
        pull(tmp_path, refuse)
    assert list((tmp_path / "images" / "incoming").iterdir()) == []


def test_a_registry_that_is_busy_for_a_moment_is_asked_again(tmp_path):
    def busy(fake, request):
        asked = [path for path, _ in fake.seen if path == request.path]
        return Response(503, (), b"") if is_layer(request) and len(asked) < 3 else None

    _, store, _ = pull(tmp_path, busy)
    assert digest_of(LAYER) in store.content.digests()


def test_an_endless_manifest_is_cut_off(tmp_path):
    async def endless():
        while True:
            yield b" " * 65536
            await asyncio.sleep(0)

    with pytest.raises(ImageError, match="too large"):
        pull(tmp_path, lambda fake, request: Stream(200, (), endless()))


def test_a_manifest_of_another_digest_is_refused(tmp_path):
    def lie(fake, request):
        return Response(200, (), MANIFEST + b" ") if "sha256:" in request.path else None

    with pytest.raises(ImageError, match="digest verification"):
        pull(tmp_path, lie)


async def pulled(store, host):
    with store.claims.claiming() as claim:
        puller = Puller(store, "amd64", claim, SystemClock(), lambda count: None)
        wanted = Wanted("app", host, "team/app", "1")
        return await puller.pull(wanted, [Host(f"http://{host}/v2")], None)


def test_two_pulls_at_once_fetch_a_layer_once(tmp_path):
    """As two clusters do that share their blobs."""
    fake = FakeRegistry()

    async def story():
        server = Server(fake.answer, clock=SystemClock(), name="registry")
        port = await server.start("127.0.0.1", 0)
        stores = [ImageStore(tmp_path / name, tmp_path / "shared") for name in ("a", "b")]
        try:
            await all_of(pulled(store, f"127.0.0.1:{port}") for store in stores)
        finally:
            await server.stop(0)

    asyncio.run(story())
    assert len([path for path, _ in fake.seen if path.endswith(digest_of(LAYER))]) == 1


class JustFinished(ContentStore):
    """Another cluster has the layer between a look for it and the beginning of a fetch."""

    def begin(self, descriptor, *, wait=False):
        if not wait and descriptor.digest == digest_of(LAYER):
            self.write(descriptor, [LAYER])
        return super().begin(descriptor, wait=wait)


def test_a_layer_that_another_has_just_finished_is_not_fetched(tmp_path):
    fake = FakeRegistry()

    async def story():
        server = Server(fake.answer, clock=SystemClock(), name="registry")
        port = await server.start("127.0.0.1", 0)
        store = ImageStore(tmp_path / "a", tmp_path / "shared")
        store.content = JustFinished(tmp_path / "shared")
        try:
            await pulled(store, f"127.0.0.1:{port}")
        finally:
            await server.stop(0)

    asyncio.run(story())
    assert not [path for path, _ in fake.seen if path.endswith(digest_of(LAYER))]
    assert list((tmp_path / "shared" / "incoming").iterdir()) == []


def test_a_token_is_fetched_with_the_login_and_not_carried_elsewhere(tmp_path):
    basic = "Basic " + base64.b64encode(b"me:secret").decode()

    def guarded(fake, request):
        given = request.headers.get("authorization", "")
        if request.path == "/token":
            assert given == basic
            assert "scope=repository%3Ateam/app%3Apull" in request.query
            return Response(200, (), b'{"token": "T"}')
        if request.path == "/elsewhere":
            assert not given
            return Response(200, (), LAYER)
        if given != "Bearer T":
            challenge = (
                f'Bearer realm="{fake.url}/token",service="s",scope="repository:team/app:pull"'
            )
            return Response(401, (("www-authenticate", challenge),), b"")
        if request.path.endswith(digest_of(LAYER)):
            # Another name for the same server is another server.
            target = fake.url.replace("127.0.0.1", "localhost") + "/elsewhere"
            return Response(307, (("location", target),), b"")
        return None

    _, _, manifest = pull(tmp_path, guarded, login=Login("me", "secret"))
    assert manifest.digest == digest_of(MANIFEST)


def test_a_registry_that_only_redirects_ends(tmp_path):
    with pytest.raises(ImageError, match="again and again"):
        pull(tmp_path, lambda fake, request: Response(302, (("location", request.path),), b""))


def test_secrets_are_not_shown():
    assert "secret" not in repr(Login("me", "secret", "secret"))
    assert Login("me", "secret").basic().startswith("Basic ")
