"""Encryption at rest."""

import asyncio
import base64

import pytest

from sampan.apiserver.storage.encryption import (
    PREFIX,
    EncryptedStore,
    Unreadable,
    covering,
    transformers,
)
from sampan.apiserver.storage.encryption_schemes import BadEncryption
from sampan.store.memory import MemoryStore
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock

KEY = "/registry/secrets/default/a"
ONE, TWO = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))


def configuration(*providers, resources=("secrets",)):
    rows = [{"resources": list(resources), "providers": list(providers)}]
    return {"kind": "EncryptionConfiguration", "resources": rows}


def provider(kind, *secrets):
    return {kind: {"keys": [{"name": f"k{one[:3]}", "secret": one} for one in secrets]}}


def run(test, *providers):
    async def main():
        plain = MemoryStore(LoopClock())
        await test(
            plain, lambda *p, **more: EncryptedStore(plain, transformers(configuration(*p, **more)))
        )
        await plain.close()

    virtual_time.run(main())


@pytest.mark.parametrize("kind", ["aescbc", "aesgcm", "secretbox"])
def test_what_is_stored_cannot_be_read_and_what_is_read_is_plain(kind):
    async def test(plain, opened):
        store = opened(provider(kind, ONE))
        watch = store.watch("/registry/", 1)
        revision = await store.create(KEY, b"the password")
        await store.create("/registry/pods/default/p", b"a pod")
        raw = await plain.get(KEY)
        assert raw.value.startswith(PREFIX + f"{kind}:v1:".encode())
        assert b"password" not in raw.value
        assert (await plain.get("/registry/pods/default/p")).value == b"a pod"
        assert (await store.get(KEY)).value == b"the password"
        await store.update(KEY, b"another", revision)
        assert [one.value for one in (await store.range("/registry/secrets/")).entries] == [
            b"another"
        ]
        seen = []
        async for changes in watch:
            seen += [one.entry.value for one in changes]
            if len(seen) == 3:
                break
        watch.close()
        assert seen == [b"the password", b"a pod", b"another"]

    run(test)


def test_keys_are_rotated_and_old_values_written_anew():
    async def test(plain, opened):
        await plain.create(KEY, b"from before")
        first = opened(provider("aescbc", ONE), {"identity": {}})
        assert (await first.get(KEY)).value == b"from before"
        assert await first.reencrypt({}) == 1
        assert await first.reencrypt({}) == 0
        second = opened(provider("aesgcm", TWO), provider("aescbc", ONE))
        assert (await second.get(KEY)).value == b"from before"
        assert await second.reencrypt({}) == 1
        only = opened(provider("aesgcm", TWO))
        assert (await only.get(KEY)).value == b"from before"
        with pytest.raises(Unreadable):
            await opened(provider("aescbc", ONE)).get(KEY)
        back = opened({"identity": {}}, provider("aesgcm", TWO))
        assert await back.reencrypt({}) == 1
        assert (await plain.get(KEY)).value == b"from before"

    run(test)


@pytest.mark.parametrize("kind", ["aesgcm", "secretbox"])
def test_a_value_that_was_changed_is_not_handed_out(kind):
    async def test(plain, opened):
        store = opened(provider(kind, ONE))
        await store.create(KEY, b"the password")
        raw = await plain.get(KEY)
        await plain.update(KEY, raw.value[:-1] + bytes([raw.value[-1] ^ 1]), raw.revision)
        with pytest.raises(Unreadable):
            await store.get(KEY)

    run(test)


def test_a_value_does_not_move_to_another_key():
    async def test(plain, opened):
        store = opened(provider("aesgcm", ONE))
        await store.create(KEY, b"the password")
        await plain.create("/registry/secrets/default/b", (await plain.get(KEY)).value)
        with pytest.raises(Unreadable):
            await store.get("/registry/secrets/default/b")

    run(test)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        configuration(),
        configuration({"kms": {}}),
        configuration(provider("aescbc", base64.b64encode(b"short").decode())),
        configuration(provider("aesgcm", "no base64!")),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(broken):
    with pytest.raises(BadEncryption):
        transformers(broken)


def test_resources_are_named_by_group_or_all():
    found = transformers(configuration({"identity": {}}, resources=["*.apps", "configmaps"]))
    assert "/registry/deployments.apps/" in found
    assert "/registry/configmaps/" in found
    assert "/registry/secrets/" not in found
    assert "/registry/secrets/" in transformers(configuration({"identity": {}}, resources=["*.*"]))


@pytest.mark.parametrize(
    "resources",
    [["*.*"], ["*.example.com"], ["widgets.example.com"], ["secrets", "*.example.com", "*.*"]],
)
def test_kinds_that_somebody_defines_are_encrypted_too(resources):
    key = "/registry/widgets.example.com/default/a"

    async def test(plain, opened):
        await plain.create("/registry/widgets.example.com/default/old", b"from before")
        store = opened(provider("aesgcm", ONE), {"identity": {}}, resources=resources)
        await store.create(key, b"the password")
        assert b"password" not in (await plain.get(key)).value
        assert (await store.get(key)).value == b"the password"
        assert await store.reencrypt({}) == 1
        assert b"before" not in (await plain.get("/registry/widgets.example.com/default/old")).value

    run(test)


def test_other_groups_and_what_is_no_kind_stay_as_they_are():
    async def test(plain, opened):
        store = opened(provider("aesgcm", ONE), {"identity": {}}, resources=["*.example.com"])
        for key in ("/registry/widgets.example.org/default/a", "/registry/ranges/serviceips"):
            await store.create(key, b"plain")
            assert (await plain.get(key)).value == b"plain"

    run(test)


def test_the_first_that_covers_a_kind_wins():
    def row(secret, *resources):
        return configuration(provider("aesgcm", secret), resources=list(resources))["resources"]

    rows = row(ONE, "*.example.com") + row(TWO, "widgets.example.com", "*.*")
    found = transformers({**configuration({"identity": {}}), "resources": rows})
    assert "/registry/widgets.example.com/" not in found
    assert covering(found, "/registry/widgets.example.com/") is found["*.example.com"]
    assert covering(found, "/registry/boats.example.org/") is found["*.*"]


def test_what_is_written_anew_still_expires():
    """An event lives for an hour, with a new key as well."""

    async def test(plain, opened):
        await plain.create(KEY, b"from before", ttl_seconds=60)
        store = opened(provider("aescbc", ONE), {"identity": {}})
        assert await store.reencrypt({"/registry/secrets/": 60}) == 1
        assert await store.get(KEY) is not None
        await asyncio.sleep(61)
        assert await store.get(KEY) is None

    run(test)


def test_two_keys_of_one_name_are_refused():
    """Only the first would ever be tried, and what the other has sealed would be lost."""
    keys = [{"name": "k", "secret": ONE}, {"name": "k", "secret": TWO}]
    with pytest.raises(BadEncryption, match="same name"):
        transformers(configuration({"aescbc": {"keys": keys}}))
    twice = [{"aescbc": {"keys": keys[:1]}}, {"aescbc": {"keys": keys[1:]}}]
    with pytest.raises(BadEncryption, match="same name"):
        transformers(configuration(*twice))
    transformers(configuration({"aescbc": {"keys": keys[:1]}}, {"aesgcm": {"keys": keys[1:]}}))


def test_one_value_that_cannot_be_decrypted_keeps_nobody_from_the_others():
    async def test(plain, opened):
        store = opened(provider("aesgcm", ONE))
        watch = store.watch("/registry/", 1)
        await store.create(KEY, b"the password")
        await plain.create("/registry/secrets/default/b", b"plain")
        await plain.create("/registry/secrets/default/c", PREFIX + b"aesgcm:v1:other:x")
        await store.create("/registry/secrets/default/d", b"another")
        readable = [b"the password", b"", b"", b"another"]
        assert [one.value for one in (await store.range("/registry/")).entries] == readable
        seen = []
        async for changes in watch:
            seen += [one.entry.value for one in changes]
            if len(seen) == len(readable):
                break
        watch.close()
        assert seen == readable
        assert await store.reencrypt({}) == 0

    run(test)
