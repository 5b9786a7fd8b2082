import asyncio
import json
import os
import sys

import pytest

from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of
from sampan.kubelet.images.credential_providers import (
    CredentialProvider,
    CredentialProviders,
    ProviderConfigError,
    answer_of,
    merge,
    providers_of,
    request_for,
)
from sampan.kubelet.images.reference import parse

V1 = "credentialprovider.kubelet.k8s.io/v1"
GOOD = {
    "name": "plugin",
    "apiVersion": V1,
    "matchImages": ["*.example", "registry.test:5000/team"],
    "defaultCacheDuration": "1h30m",
    "args": ["get"],
    "env": [{"name": "REGION", "value": "north"}],
}


def config(*providers, **more):
    kind = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig"}
    return {**kind, "providers": list(providers), **more}


@pytest.fixture
def bin_dir(tmp_path):
    """A plugin that counts its runs and answers what the file beside it says."""
    program = tmp_path / "plugin"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        f"home = {str(tmp_path)!r}\n"
        "open(home + '/asked', 'a').write(sys.stdin.read() + os.environ['REGION'] + '\\n')\n"
        "sys.stdout.write(open(home + '/answer').read())\n"
        "sys.stderr.write('told you so')\n"
        "sys.exit(int(open(home + '/code').read()))\n"
    )
    program.chmod(0o755)
    (tmp_path / "code").write_text("0")
    return tmp_path


def answer(*, key_type="Image", user="robot", **more):
    auth = {"registry.example": {"username": user, "password": "p"}}
    kind = {"apiVersion": V1, "kind": "CredentialProviderResponse"}
    return json.dumps({**kind, "cacheKeyType": key_type, "auth": auth, **more})


def test_a_configuration_becomes_providers(bin_dir):
    (one,) = providers_of(config(GOOD), bin_dir=str(bin_dir), environment={"PATH": "/bin"})
    assert (one.program, one.arguments) == (f"{bin_dir}/plugin", ("get",))
    assert one.cache_seconds == 5400.0
    assert one.environment == {"PATH": "/bin", "REGION": "north"}
    both = merge([config(GOOD), config({**GOOD, "name": "other"})])
    assert [one["name"] for one in both["providers"]] == ["plugin", "other"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "../plugin"}, "name"),
        ({"name": "other"}, "did not exist"),
        ({"apiVersion": "v1"}, "apiVersion"),
        ({"matchImages": []}, "matchImages: Required"),
        ({"matchImages": ["https://x.example"]}, "without a scheme"),
        ({"defaultCacheDuration": None}, "defaultCacheDuration: Required"),
        ({"defaultCacheDuration": "10 minutes"}, "is not a duration"),
        ({"defaultCacheDuration": "-1m"}, "is not a duration"),
        ({"tokenAttributes": {"cacheType": "Token"}}, "tokenAttributes"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(bin_dir, change, complaint):
    with pytest.raises(ProviderConfigError, match=complaint):
        providers_of(config({**GOOD, **change}), bin_dir=str(bin_dir), environment={})


def test_a_configuration_of_another_kind_is_refused(bin_dir):
    for wrong in (
        config(),
        config(GOOD, GOOD),
        config(GOOD, kind="X"),
        config(GOOD, apiVersion="v1"),
    ):
        with pytest.raises(ProviderConfigError):
            providers_of(wrong, bin_dir=str(bin_dir), environment={})


def test_a_plugin_is_asked_in_its_own_version():
    provider = CredentialProvider("p", "/p", ("*.example",), 60.0, V1.replace("v1", "v1beta1"))
    asked = json.loads(request_for(provider, "registry.example/app"))
    assert asked == {
        "kind": "CredentialProviderRequest",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1beta1",
        "image": "registry.example/app",
    }
    with pytest.raises(ValueError, match="did not match"):
        answer_of(provider, answer().encode())


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", answer(key_type="Pod"), answer(cacheDuration="soon"), answer(kind="Status")],
)
def test_an_answer_that_is_none_is_an_error(text):
    provider = CredentialProvider("p", "/p", ("*.example",), 60.0)
    with pytest.raises(ValueError, match=r"."):
        answer_of(provider, text.encode())


def asked(bin_dir):
    path = bin_dir / "asked"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line[: line.rindex("}") + 1])["image"] for line in lines]


def users(bin_dir, *images, metrics=None, at_once=False):
    """What the images get, one after the other, from one CredentialProviders."""
    providers = providers_of(config(GOOD), bin_dir=str(bin_dir), environment=dict(os.environ))

    async def story():
        whole = CredentialProviders(providers, clock=SystemClock(), metrics=metrics or Metrics())
        looks = [whole.entries(parse(image)) for image in images]
        found = await all_of(looks) if at_once else [await look for look in looks]
        return [[one.username for _, one in entries] for entries in found]

    return asyncio.run(story())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "runs"),
    [
        ({"key_type": "Image"}, 2),
        ({"key_type": "Registry"}, 1),
        ({"key_type": "Global"}, 1),
        ({"key_type": "Global", "cacheDuration": "0s"}, 3),
    ],
)
def test_an_answer_is_used_as_far_and_as_long_as_it_says(bin_dir, more, runs):
    (bin_dir / "answer").write_text(answer(**more))
    images = ("registry.example/a", "registry.example/a:2", "registry.example/b")
    assert users(bin_dir, *images) == [["robot"]] * 3
    assert len(asked(bin_dir)) == runs


@pytest.mark.slow
def test_a_plugin_is_asked_once_for_images_that_it_matches(bin_dir):
    (bin_dir / "answer").write_text(answer())
    images = (
        "registry.example/a",
        "registry.test:5000/team/b",
        "docker.io/c",
        "registry.example/a",
    )
    assert users(bin_dir, *images, at_once=True) == [["robot"], ["robot"], [], ["robot"]]
    assert sorted(asked(bin_dir)) == ["registry.example/a", "registry.test:5000/team/b"]
    assert "north" in (bin_dir / "asked").read_text()


@pytest.mark.slow
def test_a_plugin_that_fails_costs_only_its_credentials(bin_dir):
    metrics = Metrics()
    (bin_dir / "answer").write_text(answer())
    (bin_dir / "code").write_text("3")
    assert users(bin_dir, "registry.example/a", metrics=metrics) == [[]]
    (bin_dir / "code").write_text("0")
    (bin_dir / "answer").write_text("hello")
    assert users(bin_dir, "registry.example/a", metrics=metrics) == [[]]
    (bin_dir / "plugin").write_text("no program")
    assert users(bin_dir, "registry.example/a", metrics=metrics) == [[]]
    shown = metrics.render()
    assert 'kubelet_credential_provider_plugin_errors{plugin_name="plugin"} 3' in shown
