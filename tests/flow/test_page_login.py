"""Logging in to the page, through the whole server: who gets in, as whom, and for how long. [X1]"""

import asyncio
import base64

import pytest

from sampan.apiserver.authn.page_sessions import CODE_SECONDS, MOST_CODES, SESSION_SECONDS
from sampan.apiserver.authn.user import MASTERS
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.http.messages import Upgrade
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server, request
from tests.support.worlds.control_plane import published_schema

CODE, SESSION = "/sampan/v1/ui/code", "/ui/session"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


def with_server(work, **settings):
    async def test():
        chosen = ApiServerSettings(**settings)
        async with api_server(published_schema(), settings=chosen) as api:
            await work(api)

    virtual_time.run(test())


def bearer(token):
    return {"authorization": f"Bearer {token}"}


async def who(api, token):
    """The user's name and groups, or the status."""
    reply = await api.send("POST", WHO, {}, user="", headers=bearer(token))
    if reply.status != 201:
        return reply.status
    user = reply.obj["status"]["userInfo"]
    return user["username"], user["groups"]


async def log_in(api, **shown):
    code = (await api.send("POST", CODE, {}, **shown)).obj["code"]
    reply = await api.send("POST", SESSION, {"code": code}, user="")
    assert reply.status == 201, reply.body
    return code, reply.obj["token"]


def test_a_session_is_the_user_of_the_certificate_that_asked_for_its_code():
    async def work(api):
        _, token = await log_in(api, user="bob", group="dev")
        assert await who(api, token) == ("bob", ["dev", "system:authenticated"])
        gone = await api.send("DELETE", SESSION, user="", headers=bearer(token))
        assert gone.status == 204
        assert await who(api, token) == 401

    with_server(work)


def test_a_code_works_once_and_not_for_long():
    async def work(api):
        code, _ = await log_in(api)
        again = await api.send("POST", SESSION, {"code": code}, user="")
        assert (again.status, "sampan ui" in again.message) == (401, True)
        late = (await api.send("POST", CODE, {})).obj["code"]
        await asyncio.sleep(CODE_SECONDS + 1)
        assert (await api.send("POST", SESSION, {"code": late}, user="")).status == 401

    with_server(work)


def test_a_session_ends_by_itself():
    async def work(api):
        _, token = await log_in(api)
        await asyncio.sleep(SESSION_SECONDS - 1)
        assert await who(api, token) != 401
        await asyncio.sleep(2)
        assert await who(api, token) == 401

    with_server(work)


def test_a_session_of_a_token_is_only_as_good_as_the_token():
    async def work(api):
        shown = {"user": "", "headers": bearer("s3cret")}
        _, token = await log_in(api, **shown)
        assert await who(api, token) == ("ann", ["ops", "system:authenticated"])
        api.server._authenticators.token_file._users.clear()  # revoked
        assert await who(api, token) == 401

    with_server(work, token_file='s3cret,ann,7,"ops"')


def test_nobody_gets_a_code_for_somebody_else():
    async def work(api):
        assert (await api.send("POST", CODE, {}, user="")).status == 401
        spoken_for = {"impersonate-user": "ann"}
        assert (await api.send("POST", CODE, {}, headers=spoken_for)).status == 403
        _, token = await log_in(api)
        # Nor does a session make another one, which would never end.
        assert (await api.send("POST", CODE, {}, user="", headers=bearer(token))).status == 403

    with_server(work)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"code": 7}', b'{"code": "\\ud800"}', b"\xff"]
)
def test_a_bad_body_is_refused(body):
    async def work(api):
        reply = await api.send("POST", SESSION, body, user="")
        assert reply.status in (400, 401)

    with_server(work)


def test_codes_that_nobody_uses_take_no_room():
    async def work(api):
        first = (await api.send("POST", CODE, {})).obj["code"]
        for _ in range(MOST_CODES):
            last = (await api.send("POST", CODE, {})).obj["code"]
        assert (await api.send("POST", SESSION, {"code": first}, user="")).status == 401
        assert (await api.send("POST", SESSION, {"code": last}, user="")).status == 201

    with_server(work)


def test_another_page_cannot_use_the_browsers_certificate():
    """Browsers show it whoever asks; the origin says who does."""

    async def work(api):
        own = {
            "host": "127.0.0.1:6443", "origin": "https://127.0.0.1:6443",
            "sec-fetch-site": "same-origin", "user-agent": "Mozilla/5.0",
        }  # fmt: skip
        other = {**own, "origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        body = {"metadata": {"name": "made"}}
        path = "/api/v1/namespaces"
        assert (await api.send("POST", path, body, headers=other)).status == 401
        assert (await api.send("GET", path, headers={**other, **HANDSHAKE})).status == 401
        assert (await api.send("POST", SESSION, {"code": "x"}, headers=other)).status == 403
        assert (await api.send("POST", path, body, headers=own)).status == 201
        # An old browser does not say from where it fetches; its name says that it is one.
        old = {key: item for key, item in other.items() if key != "sec-fetch-site"}
        assert (await api.send("POST", path, body, headers=old)).status == 401
        # Libraries for WebSockets name an origin, whoever uses them.
        program = {**old, "user-agent": "Go-http-client/1.1"}
        assert (await api.send("POST", path, body, headers=program)).status == 409
        # `kubectl proxy` passes the origin of the pages that it serves on, and says that it is one.
        proxied = {**other, "x-forwarded-for": "127.0.0.1"}
        assert (await api.send("POST", path, body, headers=proxied)).status == 409

    with_server(work)


def test_a_websocket_brings_its_token_among_the_protocols():
    async def work(api):
        _, token = await log_in(api)
        shown = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
        offered = f"base64url.bearer.authorization.k8s.io.{shown}, json.k8s.io"
        headers = {**HANDSHAKE, "sec-websocket-protocol": offered}
        asked = request("GET", "/api/v1/pods?watch=1", None, "", "", headers)
        reply = await api.server.handle_http(asked)
        assert isinstance(reply, Upgrade)
        assert dict(reply.headers)["sec-websocket-protocol"] == "json.k8s.io"
        assert token not in str(asked.headers)  # whoever gets the request next gets no token
        for wrong in (
            offered.partition(",")[0],
            offered.replace(shown, "!"),
            offered + ", " + offered,
        ):
            headers["sec-websocket-protocol"] = wrong
            refused = await api.send("GET", "/api/v1/pods?watch=1", user="", headers=headers)
            assert refused.status == 401, wrong

    with_server(work)


def test_without_the_page_there_is_nothing_of_it():
    async def work(api):
        assert (await api.get("/ui/")).status == 404
        assert (await api.send("GET", "/ui/", user="")).status == 401
        assert (await api.send("POST", CODE, {})).status == 404

    with_server(work, page=False)


def test_a_large_body_is_read_where_a_part_is_asked_to_do_something():
    """Many events of a pod: the page sends them all for a diagnosis."""
    path = "/sampan/v1/asked"

    async def work(api):
        async def action(asked):
            return asked

        api.server.add_action(path, action)

        def asked(where, user, group):
            return api.server.wants_body(request("POST", where, {}, user, group, {}))

        assert await asked(path, "admin", MASTERS)
        assert not await asked(path, "bob", "dev")
        assert not await asked("/sampan/v1/other", "admin", MASTERS)

    with_server(work)
