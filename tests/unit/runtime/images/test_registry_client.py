"""Registries that lead elsewhere: whom the client asks then, and what it tells them."""

import asyncio
import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampan.core.clock import SystemClock
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.hosts import Host, hosts_of
from sampan.runtime.images.registry_client import Login, RegistryClient, contexts_of

LOGIN = Login("alice", "PULLPASSWORD")
SECRET = LOGIN.basic()


class Registry:
    """Answers as `behaviour` says, and remembers what it was told."""

    def __init__(self, behaviour):
        self.behaviour, self.told, self.url = behaviour, [], ""

    async def answer(self, request):
        self.told.append(dict(request.headers).get("authorization", ""))
        return self.behaviour(request)

    @contextlib.asynccontextmanager
    async def serving(self):
        server = Server(self.answer, clock=SystemClock(), name="registry")
        port = await server.start("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{port}"
        try:
            yield
        finally:
            await server.stop(0)


def ask(first, second, login=LOGIN, *, named=True):
    """What the client of the first answers, which may lead to the second."""

    async def story():
        async with first.serving(), second.serving():
            host = Host(f"{first.url}/v2")
            if not named:
                (host,) = hosts_of(first.url.removeprefix("http://"), ())
            contexts = contexts_of(host.encryption)
            client = RegistryClient(host, contexts, "registry.test", "team/app", login)
            try:
                answer = await client.get("manifests/1", "*/*")
                return answer.status, answer.body
            except (ImageError, HttpError) as error:
                return error
            finally:
                await client.close()

    return asyncio.run(story())


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
def test_nobody_to_whom_a_registry_redirects_learns_the_password(scheme):
    def ask_for_it(request):
        if request.path == "/token":
            return Response(200, (), b'{"token": "t"}')
        challenge = f'{scheme} realm="{second.url}/token"'
        return Response(401, (("www-authenticate", challenge),), b"")

    def lead_on(request):
        if not dict(request.headers).get("authorization"):
            return Response(401, (("www-authenticate", "Basic realm=x"),), b"")
        return Response(307, (("location", f"{second.url}/blob"),), b"")

    first, second = Registry(lead_on), Registry(ask_for_it)
    assert ask(first, second) == (401, b"")
    assert SECRET in first.told, "the registry itself has it"
    assert set(second.told) == {""}


def test_a_registry_at_an_address_of_the_node_is_asked_only_where_it_was_named():
    first, second = (Registry(lambda request: Response(200, (), b"{}")) for _ in range(2))
    refused = ask(first, second, named=False)
    assert "only if --registry-mirror or certs.d names it" in str(refused)
    assert first.told == []
    assert ask(first, second) == (200, b"{}")


@pytest.mark.parametrize(
    ("registry", "api"),
    [
        ("localhost:5000", "http://localhost:5000/v2"),
        ("127.9.9.9:1", "http://127.9.9.9:1/v2"),
        ("[::1]:5000", "http://[::1]:5000/v2"),
        ("localhost.evil.example", "https://localhost.evil.example/v2"),
        ("127.evil.example", "https://127.evil.example/v2"),
        ("127.0.0.1.evil.example:80", "https://127.0.0.1.evil.example:80/v2"),
    ],
)
def test_nobody_is_asked_unencrypted_for_a_name_that_begins_like_this_machine(registry, api):
    assert hosts_of(registry, ())[0].api == api


def test_passwords_are_not_sent_unencrypted_where_the_registry_is_not():
    host = Host("https://registry.test/v2")
    client = RegistryClient(host, contexts_of(host.encryption), "registry.test", "x", LOGIN)
    challenge = 'Bearer realm="http://registry.test/token"'
    with pytest.raises(ImageError, match="where tokens are"):
        asyncio.run(client._answer_challenge(challenge))


ODD = st.one_of(
    st.text(max_size=30),
    st.sampled_from([
        "", "//", "http://", "http://[", "http://[::1", "https://x:y/", "http://a b/", "file:///etc",
        "http://127.0.0.1:99999999/", "http://\u2028/", "/v2/%00", "http://é/", "http:///x", "?#",
        "http://user:pass@127.0.0.1:1/", "data:,x", "HTTP://127.0.0.1:1", "http://0/", "\\\\x\\y",
    ]),
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([301, 302, 307, 401]), ODD, ODD)
def test_whatever_a_registry_says_there_is_an_answer_or_a_reason(status, location, challenge):
    text = "".join(char for char in challenge if " " <= char < "\x7f")
    where = "".join(char for char in location if " " <= char < "\x7f")
    headers = [("location", where), ("www-authenticate", f'Bearer realm="{where}",{text}')]
    first = Registry(lambda request: Response(status, tuple(headers), b""))
    second = Registry(lambda request: Response(404, (), b""))
    assert isinstance(ask(first, second), tuple | ImageError | HttpError)
    assert second.told == []
