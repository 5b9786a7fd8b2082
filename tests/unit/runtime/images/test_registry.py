"""Pulls from registries: one that works, and ones that cut, lie, never end or want a login."""

import asyncio
import base64
import json

import pytest

from sampan.core.clock import SystemClock
from sampan.core.http import Response, Stream
from sampan.core.http_server import Server
from sampan.runtime.images import manifests, registry
from sampan.runtime.images.content import ImageError, digest_of
from sampan.runtime.images.image_store import ImageStore
from sampan.runtime.images.registry import ImageMissing, Login, Puller, Wanted, places

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
        self.behaviour, self.requests = behaviour, []

    async def answer(self, request):
        self.requests.append((request.path, dict(request.headers)))
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
    (tmp_path / "images").mkdir(exist_ok=True)
    store = ImageStore(tmp_path / "images")

    async def story():
        server = Server(fake.answer, clock=SystemClock(), name="registry")
        port = await server.start("127.0.0.1", 0)
        fake.url = f"http://127.0.0.1:{port}"
        host = "127.0.0.1:1" if mirrored else f"127.0.0.1:{port}"
        mirrors = {host: [fake.url]} if mirrored else {}
        puller = Puller(store, "amd64", login, set())
        try:
            wanted = Wanted(f"team/{name}:{tag}", host, f"team/{name}", tag)
            return await puller.pull(wanted, mirrors, lambda count: None)
        finally:
            await puller.close()
            await server.stop(0)

    return fake, store, asyncio.run(story())


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


def test_a_limit_is_explained(tmp_path):
    headers = (("retry-after", "30"),)
    with pytest.raises(ImageError, match=r"Too Many Requests.*mirror.*30 s"):
        pull(tmp_path, lambda fake, request: Response(429, headers, b""))


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


def test_what_was_cut_off_goes_on_where_it_was(tmp_path):
    async def half():
        yield LAYER[:2000]
        raise ConnectionResetError

    def cut(fake, request):
        if not request.path.endswith(digest_of(LAYER)):
            return None
        begin = request.headers.get("range", "").removeprefix("bytes=").removesuffix("-")
        if not begin:
            return Stream(200, (), half())
        return Response(206, (), LAYER[int(begin) :])

    fake, _, manifest = pull(tmp_path, cut)
    assert manifest.digest == digest_of(MANIFEST)
    ranges = [headers["range"] for _, headers in fake.requests if "range" in headers]
    assert ranges


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


def test_only_this_machine_is_asked_without_encryption():
    for host, scheme in (("127.0.0.1:5000", "http"), ("localhost", "http"), ("ghcr.io", "https")):
        assert places(Wanted("x", host, "x", "1"), {})[0].url == f"{scheme}://{host}"
    assert "registry-1.docker.io" in places(Wanted("x", "docker.io", "x", "1"), {})[0].url


def test_secrets_are_not_shown():
    assert "secret" not in repr(Login("me", "secret", "secret"))
    assert registry.Login("me", "secret").basic().startswith("Basic ")
