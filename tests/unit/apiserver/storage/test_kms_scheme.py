"""KMS v2: a real plugin, a process of its own, holds the keys."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from sampan.apiserver.storage.encryption import (
    EncryptedStore,
    Unreadable,
    Unsealable,
    transformers,
)
from sampan.store.memory import MemoryStore
from tests.support.virtual_time import LoopClock

KEY = "/registry/secrets/default/a"
ROOT = Path(__file__).parents[4]
IDENTITY = {"identity": {}}


class Service:
    def __init__(self, directory):
        self.socket, self.state = f"{directory}/kms.sock", directory / "state"
        self.use("key-1")
        command = [sys.executable, "-m", "tests.support.parts.kms_plugin", self.socket, self.state]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert self.process.stdout.readline() == b"ready\n"

    def use(self, key):
        self.state.write_text(key)

    def be(self, healthz):
        self.state.with_suffix(".healthz").write_text(healthz)

    def asked(self):
        file = self.state.with_suffix(".asked")
        return file.read_text().split() if file.exists() else []

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def provider(self, name="vault"):
        return {"kms": {"apiVersion": "v2", "name": name, "endpoint": f"unix://{self.socket}"}}


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path)
    yield made
    made.stop()


class Moved:
    """Time that tests move."""

    def __init__(self):
        self.seconds = 1000.0

    def now(self):
        return self.seconds


def run(service, story, *providers):
    async def main():
        plain, clock = MemoryStore(LoopClock()), Moved()
        opened = []

        def store(*also):
            rows = [{"resources": ["secrets"], "providers": [*also, *providers, IDENTITY]}]
            asked = {"kind": "EncryptionConfiguration", "resources": rows}
            opened.append(EncryptedStore(plain, transformers(asked, clock)))
            return opened[-1]

        await story(plain, store, clock)
        for each in opened:
            for scheme in each.calling_schemes():
                await scheme.close()
        await plain.close()

    asyncio.run(main())


@pytest.mark.slow
def test_values_are_sealed_without_a_call_each_and_opened_after_a_start(service):
    async def story(plain, store, _clock):
        first = store()
        for name in "abc":
            await first.create(f"/registry/secrets/default/{name}", b"plain")
        assert service.asked() == ["Status", "Encrypt"]
        stored = (await plain.get(KEY)).value
        assert stored.startswith(b"k8s:enc:kms:v2:vault:")
        assert b"plain" not in stored
        again = store()
        assert [item.value for item in (await again.range("/registry/secrets/")).entries] == [
            b"plain", b"plain", b"plain"
        ]  # fmt: skip
        assert service.asked()[2:] == ["Decrypt"]

    run(service, story, service.provider())


@pytest.mark.slow
def test_a_new_key_of_the_plugin_makes_a_new_seed_and_old_values_are_written_anew(service):
    async def story(plain, store, clock):
        first = store()
        await first.create(KEY, b"plain")
        service.use("key-2")
        clock.seconds += 61
        await first.create("/registry/secrets/default/b", b"other")
        assert b"key-2" in (await plain.get("/registry/secrets/default/b")).value
        assert (await first.get(KEY)).value == b"plain"
        assert await first.reencrypt({}) == 1
        assert b"key-2" in (await plain.get(KEY)).value
        assert await first.reencrypt({}) == 0

    run(service, story, service.provider())


@pytest.mark.slow
def test_a_plugin_that_is_unwell_is_told_and_forgiven_for_three_minutes(service):
    async def story(_plain, store, clock):
        first = store()
        (scheme,) = first.calling_schemes()
        await first.create(KEY, b"plain")
        assert scheme.health() == ""
        service.be("tired")
        clock.seconds += 61
        await first.create("/registry/secrets/default/b", b"other")
        assert first.health() == "got unexpected healthz status: tired"
        clock.seconds += 200
        with pytest.raises(Unsealable, match="tired"):
            await first.create("/registry/secrets/default/c", b"more")
        assert (await first.get(KEY)).value == b"plain"
        service.be("ok")
        await first.create("/registry/secrets/default/c", b"more")
        assert scheme.health() == ""

    run(service, story, service.provider())


@pytest.mark.slow
def test_without_the_plugin_nothing_is_written_and_nothing_handed_out(service):
    async def story(plain, store, _clock):
        await store().create(KEY, b"plain")
        stored = (await plain.get(KEY)).value
        service.stop()
        again = store()
        with pytest.raises(Unreadable):
            await again.get(KEY)
        with pytest.raises(Unsealable):
            await again.create("/registry/secrets/default/b", b"other")
        assert (await plain.get(KEY)).value == stored

    run(service, story, service.provider())


@pytest.mark.slow
def test_a_value_is_bound_to_its_key_and_plain_ones_are_read(service):
    async def story(plain, store, _clock):
        first = store()
        await plain.create("/registry/secrets/default/old", b"k")
        assert (await first.get("/registry/secrets/default/old")).value == b"k"
        await first.create(KEY, b"plain")
        moved = (await plain.get(KEY)).value
        await plain.create("/registry/secrets/default/moved", moved)
        with pytest.raises(Unreadable, match="changed"):
            await first.get("/registry/secrets/default/moved")

    run(service, story, service.provider())
