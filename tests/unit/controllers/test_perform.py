import asyncio

from sampan.api.errors import AlreadyExists, Conflict, Forbidden, NotFound
from sampan.api.resources import CONFIG_MAPS, SECRETS
from sampan.controllers.actions import Create, Delete, Patch, Record, Update
from sampan.controllers.perform import AT_ONCE, perform
from tests.support import virtual_time


class Api:
    """Notes each call, and fails those whose name says so."""

    def __init__(self, failures=None):
        self.failures = failures or {}
        self.calls, self.running, self.most = [], 0, 0

    async def _called(self, verb, name):
        self.calls.append((verb, name))
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        if name in self.failures:
            raise self.failures[name]
        return {"metadata": {"name": name}}

    async def create(self, resource, obj, namespace=""):
        return await self._called("create", obj["metadata"]["name"])

    async def update(self, resource, obj, *, subresource=""):
        return await self._called("update", obj["metadata"]["name"])

    async def patch(self, resource, namespace, name, patch, *, patch_type, subresource):
        return await self._called("patch", name)

    async def delete(self, resource, namespace, name, **options):
        return await self._called("delete", name)


class Recorder:
    def __init__(self):
        self.recorded = []

    def record(self, about, type_, reason, message):
        self.recorded.append(reason)


def create(name, **keywords):
    return Create(CONFIG_MAPS, {"metadata": {"name": name}}, **keywords)


def performed(actions, api=None, recorder=None):
    return virtual_time.run(perform(actions, api or Api(), recorder or Recorder()))


def test_every_action_is_one_call():
    api, recorder = Api(), Recorder()
    actions = [
        create("a"),
        Update(SECRETS, {"metadata": {"name": "b"}}),
        Patch(SECRETS, "ns", "c", {}),
        Delete(SECRETS, "ns", "d", "uid"),
        Record({}, "Normal", "Done", "done"),
    ]
    outcomes = performed(actions, api, recorder)
    assert [outcome.action for outcome in outcomes] == actions
    assert api.calls == [("create", "a"), ("update", "b"), ("patch", "c"), ("delete", "d")]
    assert recorder.recorded == ["Done"]


def test_creations_start_slowly_and_stop_at_the_first_failure():
    api = Api({"3": Forbidden("quota")})
    outcomes = performed([create(str(number)) for number in range(100)], api)
    assert len(outcomes) == 7  # 1 + 2 + 4: the failure was in the third batch
    assert len(api.calls) == 7


def test_no_more_than_a_bound_run_at_once():
    api = Api()
    performed([Delete(SECRETS, "ns", str(n), "u") for n in range(3 * AT_ONCE)], api)
    assert api.most == AT_ONCE


def test_what_follows_a_failure_is_not_tried():
    api = Api({"a": Forbidden("no")})
    outcomes = performed([create("a"), Delete(SECRETS, "ns", "b", "u")], api)
    assert [call[0] for call in api.calls] == ["create"]
    assert outcomes[0].error is not None


def test_errors_that_settle_the_matter_are_no_failures():
    api = Api({"a": AlreadyExists("there"), "b": NotFound("gone"), "c": Conflict("another")})
    actions = [
        create("a", settled=(AlreadyExists,)),
        Delete(SECRETS, "ns", "b", "u"),
        Delete(SECRETS, "ns", "c", "u"),
    ]
    assert all(outcome.error is None for outcome in performed(actions, api))


def test_a_conflict_over_a_revision_is_a_failure():
    [outcome] = performed(
        [Delete(SECRETS, "ns", "c", "u", revision=5)], Api({"c": Conflict("changed")})
    )
    assert isinstance(outcome.error, Conflict)


def test_creations_in_a_namespace_that_goes_away_are_let_go():
    causes = {"causes": [{"reason": "NamespaceTerminating"}]}
    [outcome] = performed([create("a")], Api({"a": Forbidden("no", details=causes)}))
    assert outcome.error is None
    assert outcome.result is None
