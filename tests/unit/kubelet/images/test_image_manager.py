import asyncio
import base64
import itertools
import json

import pytest

from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of
from sampan.kubelet.contracts.runtime import Image, ImageNotFound, RuntimeFailure
from sampan.kubelet.images.access import ImageAccess
from sampan.kubelet.images.credentials import ImageCredentials, NodeCredentialSettings
from sampan.kubelet.images.image_manager import ImageFailure, ImageManager
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u1"}, "spec": {}}


class Registry:
    """The image half of a runtime, with a registry behind it that counts."""

    def __init__(self, *, failing=None, seconds=1.0):
        self.there = {}
        self.failing = failing or {}
        self.seconds = seconds
        self.pulls = []
        self.at_once = self.most_at_once = 0

    async def image(self, reference):
        return self.there.get(reference)

    async def pull_image(self, reference, credentials):
        self.pulls.append((reference, credentials.username if credentials else None))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.at_once -= 1
        failure = self.failing.get(credentials.username if credentials else None)
        if failure is not None:
            raise failure
        image = Image(f"sha256:{reference}", (reference,), (), 1234, uid=0)
        self.there[reference] = self.there[image.id] = image
        return image.id


class Said(list):
    def __call__(self, pod, kind, reason, message, container):
        self.append((kind, reason, message))


def container(image="app:1", policy="IfNotPresent"):
    return {"name": "c", "image": image, "imagePullPolicy": policy}


def puller(registry, **more):
    said = Said()
    none = ImageCredentials(NodeCredentialSettings(), clock=LoopClock(), metrics=Metrics())
    return ImageManager(registry, LoopClock(), said, none, ImageAccess(""), **more), said


def failure_of(work):
    with pytest.raises(ImageFailure) as caught:
        virtual_time.run(work)
    return caught.value.reason, str(caught.value)


def test_a_missing_image_is_pulled_and_both_ends_are_told():
    """[N10]"""
    registry = Registry(seconds=1.2)

    async def story():
        pull, said = puller(registry)
        image = await pull.ensure(POD, container("app"), ())
        assert image.tags == ("app:latest",)
        assert said == [
            ("Normal", "Pulling", 'Pulling image "app"'),
            (
                "Normal",
                "Pulled",
                'Successfully pulled image "app" in 1.2s (1.2s including waiting). '
                "Image size: 1234 bytes.",
            ),
        ]

    virtual_time.run(story())


def test_an_image_that_is_there_is_pulled_again_only_when_always_is_asked_for():
    async def story():
        registry = Registry()
        pull, said = puller(registry)
        await pull.ensure(POD, container(), ())
        said.clear()
        await pull.ensure(POD, container(), ())
        assert said == [
            (
                "Normal",
                "Pulled",
                'Container image "app:1" already present on machine and can be accessed by the pod',
            )
        ]
        await pull.ensure(POD, container(policy="Always"), ())
        assert len(registry.pulls) == 2

    virtual_time.run(story())


def test_never_means_never():
    """[N10]"""
    pull, said = puller(Registry())
    reason, message = failure_of(pull.ensure(POD, container(policy="Never"), ()))
    assert reason == "ErrImageNeverPull"
    assert message == 'Container image "app:1" is not present with pull policy of Never'
    assert said == [("Warning", "ErrImageNeverPull", message)]


def test_a_name_that_is_none_is_told_and_not_asked_for():
    """[N10]"""
    pull, said = puller(Registry())
    reason, message = failure_of(pull.ensure(POD, container("Not A Name"), ()))
    assert reason == "InvalidImageName"
    assert message.startswith('Failed to apply default image tag "Not A Name": couldn\'t parse')
    assert said == [("Warning", "InspectFailed", message)]


def test_a_failed_pull_backs_off_twice_as_long_each_time_up_to_five_minutes():
    """[N10]"""
    registry = Registry(failing={None: ImageNotFound("not found")}, seconds=0)

    async def story():
        pull, said = puller(registry)
        clock = LoopClock()
        tried = []
        while clock.monotonic() < 1500:
            with pytest.raises(ImageFailure) as caught:
                await pull.ensure(POD, container(), ())
            if caught.value.reason == "ErrImagePull":
                tried.append(clock.monotonic())
            else:
                assert caught.value.reason == "ImagePullBackOff"
                text = 'Back-off pulling image "app:1": ErrImagePull: not found'
                assert str(caught.value) == text
            await clock.sleep(1)
        waits = [round(after - before) for before, after in itertools.pairwise(tried)]
        assert waits[:6] == [10, 20, 40, 80, 160, 300]
        assert ("Normal", "BackOff", 'Back-off pulling image "app:1"') in said
        assert ("Warning", "Failed", 'Failed to pull image "app:1": not found') in said

    virtual_time.run(story())


def test_one_pod_s_backoff_is_not_another_s():
    registry = Registry(failing={None: RuntimeFailure("no")}, seconds=0)

    async def story():
        pull, _ = puller(registry)
        other = {"metadata": {"uid": "u2"}}
        for pod in (POD, other):
            with pytest.raises(ImageFailure) as caught:
                await pull.ensure(pod, container(), ())
            assert caught.value.reason == "ErrImagePull"

    virtual_time.run(story())


def test_one_pull_per_image_and_no_more_than_the_limit_in_all():
    """[N10]"""

    async def story():
        registry = Registry()
        pull, said = puller(registry, parallel=2)
        pods = [{"metadata": {**POD["metadata"], "uid": f"u{number}"}} for number in range(2)]
        wanted = [container(f"app:{number}", "Always") for number in range(4)]
        await all_of(pull.ensure(pod, one, ()) for pod in pods for one in wanted)
        assert registry.most_at_once == 2
        assert len(registry.pulls) == 8
        waiting = [text for _, reason, text in said if reason == "Pulled"]
        assert any("in 1s (4s including waiting)" in text for text in waiting)

    virtual_time.run(story())


def test_of_two_containers_that_want_one_image_the_second_sees_how_the_first_one_fared():
    async def story():
        registry = Registry(failing={None: RuntimeFailure("connection refused")})
        pull, said = puller(registry)
        ends = []

        async def want():
            with pytest.raises(ImageFailure) as failure:
                await pull.ensure(POD, container("app:1"), ())
            ends.append(failure.value.reason)

        await all_of([want(), want()])
        assert ends == ["ErrImagePull", "ImagePullBackOff"]
        assert len([reason for _, reason, _ in said if reason == "Pulling"]) == 1

    virtual_time.run(story())


def test_every_fitting_credential_is_tried_until_one_is_taken():
    """[N10]"""
    auths = {
        "registry.example/team": {"username": "wrong", "password": "x"},
        "registry.example": {"username": "right", "password": "x"},
        "other.example": {"username": "foreign", "password": "x"},
    }
    config = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    registry = Registry(failing={"wrong": RuntimeFailure("401 Unauthorized")})

    async def story():
        pull, _ = puller(registry)
        secrets = [{"data": {".dockerconfigjson": config}}]
        await pull.ensure(POD, container("registry.example/team/app:1"), secrets)
        assert [user for _, user in registry.pulls] == ["wrong", "right"]

    virtual_time.run(story())


def test_a_registry_that_is_down_is_told_apart():
    failure = RuntimeFailure("rpc error: code = Unknown desc = RegistryUnavailable: try later")
    pull, _ = puller(Registry(failing={None: failure}))
    reason, message = failure_of(pull.ensure(POD, container(), ()))
    assert reason == "RegistryUnavailable"
    assert message == ("image pull failed for app:1 because the registry is unavailable: try later")


def test_an_image_that_took_a_login_is_only_for_those_who_can_log_in():
    """[N10] pull policy IfNotPresent is no way around a registry's password"""
    mine = pull_secret("registry.example", "mine")
    denied = RuntimeFailure("401 Unauthorized")

    async def story():
        registry = Registry(failing={None: denied, "other": denied}, seconds=0)
        pull, _ = puller(registry)
        wanted = container("registry.example/app:1")
        await pull.ensure(POD, wanted, [mine])
        await pull.ensure(POD, wanted, [mine])
        assert len(registry.pulls) == 1
        for secrets in ([], [pull_secret("registry.example", "other")]):
            other = {"metadata": {"uid": f"u-{len(secrets)}"}}
            with pytest.raises(ImageFailure) as caught:
                await pull.ensure(other, wanted, secrets)
            assert caught.value.reason == "ErrImagePull"
        with pytest.raises(ImageFailure) as caught:
            await pull.ensure(POD, container("registry.example/app:1", "Never"), [])
        assert caught.value.reason == "ErrImageNeverPull"

    virtual_time.run(story())


def test_an_image_that_everybody_can_pull_is_everybodys():
    async def story():
        registry = Registry(seconds=0)
        pull, _ = puller(registry)
        wanted = container("registry.example/app:1")
        await pull.ensure(POD, wanted, [pull_secret("registry.example", "mine")])
        await pull.ensure(POD, wanted, [])  # tries, and may
        await pull.ensure(POD, wanted, [])
        assert [user for _, user in registry.pulls] == ["mine", None]

    virtual_time.run(story())


def pull_secret(host, user):
    config = {"auths": {host: {"username": user, "password": "p"}}}
    return {"data": {".dockerconfigjson": base64.b64encode(json.dumps(config).encode()).decode()}}
