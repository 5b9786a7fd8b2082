"""Tokens that another program signs: a real one, a process of its own. [A1]"""

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from sampan.apiserver.authn.tokens import SignerFailure
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of
from tests.support.generators.api_requests import api_server, pod
from tests.support.worlds.control_plane import published_schema

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Service:
    def __init__(self, directory):
        self.socket, self.state = f"{directory}/jwt.sock", directory / "state"
        self.be(keys=["one"])
        module = "tests.support.parts.external_signer"
        command = [sys.executable, "-m", module, self.socket, self.state]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert self.process.stdout.readline() == b"ready\n"

    def be(self, **state):
        self.state.write_text(json.dumps(state))

    def asked(self):
        return self.state.with_suffix(".asked").read_text().split()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    made = Service(tmp_path_factory.mktemp("signer"))
    yield made
    made.stop()


def run(service, story, **settings):
    async def main():
        metrics, chosen = Metrics(), ApiServerSettings(
            token_signing_endpoint=service.socket, **settings
        )  # fmt: skip
        async with api_server(
            published_schema(), settings=chosen, clock=SystemClock(), metrics=metrics
        ) as api:
            await api.made(ACCOUNTS, {"metadata": {"name": "bot"}})
            await story(api, metrics)

    asyncio.run(main())


async def asked_for(api, **spec):
    return await api.post(f"{ACCOUNTS}/bot/token", {"spec": spec})


async def who(api, token):
    headers = {"authorization": f"Bearer {token}"}
    found = await api.send("POST", SELF, {}, user="", group="", headers=headers)
    return found.obj["status"]["userInfo"]["username"] if found.status == 201 else found.status


def head(token):
    part = token.partition(".")[0]
    return orjson.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_tokens_are_signed_elsewhere_and_known_here(service):
    async def story(api, metrics):
        made = await asked_for(api)
        token = made.obj["status"]["token"]
        assert head(token) == {"alg": "ES256", "kid": "one", "typ": "JWT"}
        assert await who(api, token) == "system:serviceaccount:default:bot"
        assert await who(api, f"{token[:-4]}AAAA") == 401
        (key,) = (await api.get("/openid/v1/jwks")).obj["keys"]
        assert (key["kid"], key["alg"]) == ("one", "ES256")
        issuer = await api.get("/.well-known/openid-configuration")
        assert issuer.obj["id_token_signing_alg_values_supported"] == ["ES256"]
        seconds = int(issuer.headers["cache-control"].rpartition("=")[2])
        assert 2900 < seconds <= 3000
        told = metrics.render()
        assert 'apiserver_externaljwt_sign_request_total{code="OK"} 1' in told
        assert 'apiserver_externaljwt_fetch_keys_request_total{code="OK"} 1' in told
        assert "apiserver_externaljwt_fetch_keys_data_timestamp 1700000000" in told
        assert 'method="/v1.ExternalJWTSigner/Metadata",code="OK"' in told

    service.be(keys=["one"])
    run(service, story)


def test_a_token_lasts_as_long_as_the_signer_allows(service):
    async def story(api, _metrics):
        made = await asked_for(api, expirationSeconds=90000)
        assert made.obj["spec"]["expirationSeconds"] == 3600
        assert "requested expiration of 90000 seconds shortened to 3600" in str(made.headers)

    service.be(keys=["one"], most=3600)
    run(service, story)


def test_a_key_that_is_new_is_asked_for_and_one_that_is_gone_is_not_believed(service):
    async def story(api, _metrics):
        first = (await asked_for(api)).obj["status"]["token"]
        assert await who(api, first) == "system:serviceaccount:default:bot"
        service.be(keys=["two", "old"], hidden=["old"])
        before = service.asked().count("FetchKeys")
        second = (await asked_for(api)).obj["status"]["token"]
        found = await all_of(who(api, second) for _ in range(5))
        assert set(found) == {"system:serviceaccount:default:bot"}
        assert service.asked().count("FetchKeys") == before + 1
        assert await who(api, first) == 401
        assert [key["kid"] for key in (await api.get("/openid/v1/jwks")).obj["keys"]] == ["two"]
        service.be(keys=["old", "two"], hidden=["old"])
        refused = await asked_for(api)
        assert refused.status == 500
        assert refused.message.endswith(
            "failed to generate token: while validating header: key used for signing JWT (kid: "
            "old) is excluded from OIDC discovery docs"
        )

    service.be(keys=["one"])
    run(service, story)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"header": {"typ": "JOSE"}}, "while validating header: bad type"),
        ({"header": {"kid": ""}}, "while validating header: key id missing"),
        ({"header": {"alg": "none"}}, 'while validating header: bad signing algorithm "none"'),
        ({"header": {"x5u": "http://a"}}, 'unknown field "x5u"'),
        ({"broken": "gone"}, "while signing jwt: rpc error: code = Unavailable desc = gone"),
    ],
)
def test_what_a_signer_may_not_answer(service, state, why):
    async def story(api, _metrics):
        service.be(keys=["one"], **state)
        refused = await asked_for(api)
        assert refused.status == 500
        assert refused.message.startswith("Internal error occurred: failed to generate token: ")
        assert refused.message.endswith(why)

    service.be(keys=["one"])
    run(service, story)


@pytest.mark.parametrize(
    ("state", "settings", "why"),
    [
        ({"keys": []}, {}, "found no keys"),
        ({"keys": ["a"], "again": -1}, {}, r"found invalid refresh hint \(-1s\)"),
        ({"keys": ["a"], "most": 599}, {}, r"\(599s\) is less than acceptable \(min 600s\)"),
        ({"keys": ["a"], "most": 3600}, {"token_max_seconds": 7200}, "cannot be set longer than"),
    ],
)
def test_a_server_does_not_start_with_a_signer_that_makes_no_sense(service, state, settings, why):
    async def story(_api, _metrics):
        pytest.fail("it has started")

    service.be(**state)
    with pytest.raises(SignerFailure, match=why):
        run(service, story, **settings)


def test_pods_tokens_are_extended_as_far_as_the_signer_goes(service):
    async def story(api, _metrics):
        await api.made("/api/v1/namespaces/default/pods", pod("web", serviceAccountName="bot"))
        bound = {"apiVersion": "v1", "kind": "Pod", "name": "web"}
        made = await asked_for(api, expirationSeconds=3607, boundObjectRef=bound)
        part = made.obj["status"]["token"].split(".")[1]
        claims = orjson.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        assert claims["exp"] - claims["iat"] == 7200
        assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607

    service.be(keys=["one"], most=7200)
    run(service, story)
