"""A cluster with two thousand objects of every kind goes from the oldest version to the newest, one
minor version after the other, and is killed while it is upgraded.
"""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from sampan.api import features
from sampan.api.errors import ApiError
from sampan.api.features import Release
from sampan.api.objects import key_of
from sampan.api.schema.published import Schema
from sampan.api.served import served_resources
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.client.inprocess import InProcessClient
from sampan.cmd.cluster.data_dir import open_data_dir, store_url
from sampan.cmd.cluster.releases import KEPT, kept_minor
from sampan.cmd.errors import CannotStart
from sampan.cmd.verbs.versions import upgrade_to
from sampan.core.clock import SystemClock
from sampan.core.metrics import Metrics
from sampan.store.open import open_store
from sampan.version import MINORS
from tests.flow.test_recorded_creates import CASES
from tests.support.seed import drawn

OBJECTS, EACH = 2000, 40
KILLED = """
import os, signal, sys
from sampan.cmd.verbs.versions import upgrade_to
root, minor, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
opened = upgrade_to.open_store

class Mortal:
    def __init__(self, store):
        self._store, self._left = store, left
    def __getattr__(self, name):
        return getattr(self._store, name)
    async def update(self, *words, **rest):
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1
        return await self._store.update(*words, **rest)

async def mortal(*words):
    return Mortal(await opened(*words))

upgrade_to.open_store = mortal
sys.exit(upgrade_to.run(root, minor, dry_run=False))
"""


async def serving(data, minor, work):
    """What `work` makes of a client of the cluster in a directory, served as that version."""
    with features.used(Release(minor)):
        store = await open_store(store_url(data), SystemClock())
        settings = ApiServerSettings(service_cidrs=("10.96.0.0/16",))
        server = ApiServer(store, Schema.load(), settings, SystemClock(), Metrics(), rng=drawn())
        await server.start()
        try:
            return await work(InProcessClient(server.as_user(User("admin", (MASTERS,)))))
        finally:
            await server.stop()
            await store.close()


async def filled(client):
    """Some of every kind that is on record, then claims, whose stored version changes."""
    rows = {(row.api_version, row.kind): row for row in served_resources()}
    good = [case["manifest"] for case in CASES if case["code"] == 201]
    kinds = {(one["apiVersion"], one["kind"]): one for one in reversed(good)}
    count, made = 0, set()
    for kind, manifest in kinds.items():
        row = rows.get(kind)
        if row is None or "get" not in row.verbs or row.kind in ("Namespace", "Node"):
            continue
        for number in range(EACH):
            if not await is_made(client, row, manifest, number):
                break
            count += 1
            made.add(kind)
    row = rows["resource.k8s.io/v1", "ResourceClaim"]
    while count < OBJECTS:
        assert await is_made(client, row, kinds[row.api_version, row.kind], count)
        count += 1
    return made


async def is_made(client, row, manifest, number):
    meta = {**(manifest.get("metadata") or {})}
    name = meta.pop("name", meta.pop("generateName", "x"))
    meta["name"] = f"{name}{number}" if number else name
    if row.namespaced:
        meta.setdefault("namespace", "default")
    try:
        await client.create(row, {**manifest, "metadata": meta}, meta.get("namespace", ""))
    except ApiError:
        return False  # names of some kinds mean something
    return True


async def everything(client):
    found = {}
    for row in served_resources():
        if {"list", "update"} <= set(row.verbs):
            for obj in (await client.list(row)).items:
                meta = obj["metadata"]
                found[row.group_resource, key_of(obj), meta["uid"]] = {
                    key: value
                    for key, value in obj.items()
                    if key not in ("apiVersion", "metadata")
                }
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_thousand_objects_of_every_kind_walk_from_the_oldest_to_the_newest(tmp_path, capsys):
    """[V3]"""
    data = open_data_dir(str(tmp_path / "data"))
    data.remember(version="0.0.1", store="sqlite:", **{KEPT: MINORS[0]})
    made = asyncio.run(serving(data, MINORS[0], filled))
    assert len(made) > 45
    before = asyncio.run(serving(data, MINORS[0], everything))
    assert len(before) > OBJECTS
    for minor in MINORS[1:]:
        for writes in (0, 7):
            words = [sys.executable, "-c", KILLED, str(data.root), minor, str(writes)]
            killed = subprocess.run(words, env={**os.environ}, capture_output=True, check=False)
            if killed.returncode == 0:
                break  # nothing is stored otherwise in this version
            assert killed.returncode == -signal.SIGKILL, killed.stderr
            with pytest.raises(CannotStart, match="was interrupted"):
                kept_minor(data)
        assert upgrade_to.run(str(data.root), minor, dry_run=False) == 0
        assert kept_minor(data) == minor
        after = asyncio.run(serving(data, minor, everything))
        lost = [name for name in before if name not in after]
        assert lost == []
        changed = [name for name in before if after[name] != before[name]]
        assert {name[0] for name in changed} <= MENDED, changed
        before = {name: after[name] for name in before}


# What a new version's own start brings up to date.
MENDED = {"clusterroles.rbac.authorization.k8s.io", "apiservices.apiregistration.k8s.io"}
