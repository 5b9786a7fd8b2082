"""Definitions that operators publish: all are taken, are served, and take objects.

They are fetched from the packages that carry them, pinned; where there is no network there is
nothing to try, and the tests are skipped.
"""

import asyncio
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
import yaml

from sampan.api.schema.published import Schema
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DASK = "dask-kubernetes==2026.3.0"
FORKLIFT = "@kubev2v/types@0.0.24"


def fetched(folder, *command):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{command[-1]} cannot be fetched: {error}")
    found = [path for path in folder.iterdir() if path.suffix in (".whl", ".tgz")]
    if done.returncode or not found:
        pytest.skip(f"{command[-1]} cannot be fetched")
    return found[0]


def documents(texts):
    found = [entry for text in texts for entry in yaml.load_all(text, Loader=LOADER)]
    return [entry for entry in found if entry and entry["kind"] == "CustomResourceDefinition"]


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """Of the operator of Dask: whole pod templates, hundreds of kilobytes each."""
    folder = tmp_path_factory.mktemp("dask")
    wheel = fetched(folder, sys.executable, "-m", "pip", "download", "-q", "--no-deps", DASK)
    with zipfile.ZipFile(wheel) as archive:
        return documents(archive.read(name) for name in archive.namelist() if "/crds/" in name)


@pytest.fixture(scope="module")
def forklift(tmp_path_factory):
    """Of the operator that moves virtual machines."""
    npm = shutil.which("npm") or pytest.skip("there is no npm")
    archive = fetched(tmp_path_factory.mktemp("forklift"), npm, "pack", "-s", FORKLIFT)
    with tarfile.open(archive) as files:
        wanted = [entry for entry in files if "/crds/" in entry.name]
        return documents(files.extractfile(entry).read() for entry in wanted)


def sample(schema, depth=0):
    """A small value that a schema accepts: what must be there, and near the top what may be."""
    if schema.get("enum"):
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    match schema.get("type"):
        case "object":
            needed = set(schema.get("required") or ())
            return {
                key: sample(prop, depth + 1)
                for key, prop in (schema.get("properties") or {}).items()
                if key in needed or (0 < depth < 4 and not prop.get("pattern"))
            }
        case "array":
            return [sample(schema["items"], depth + 1)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "string":
            texts = {"date-time": "2026-11-15T10:00:00Z", "byte": "eA==", "duration": "5s"}
            return texts.get(schema.get("format"), "x" * schema.get("minLength", 1))
    return "x" if schema.get("x-kubernetes-int-or-string") else {}


def sample_object(definition, version):
    schema = version["schema"]["openAPIV3Schema"]
    obj = sample({**schema, "properties": schema.get("properties") or {}})
    spec = (schema.get("properties") or {}).get("spec")
    if spec is not None:
        obj["spec"] = sample(spec, 1)
    obj["apiVersion"] = f"{definition['spec']['group']}/{version['name']}"
    return {
        **obj,
        "kind": definition["spec"]["names"]["kind"],
        "metadata": {"name": "sample"},
    }


def objects_path(definition, version):
    spec = definition["spec"]
    where = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{spec['group']}/{version['name']}{where}/{spec['names']['plural']}"


async def established(api, definition):
    reply = await api.post(DEFINITIONS, definition)
    assert reply.status == 201, reply.body
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    while True:
        reply = await api.get(path)
        conditions = {
            condition["type"]: condition["status"]
            for condition in reply.obj["status"].get("conditions") or ()
        }
        if conditions.get("Established") == "True":
            assert conditions.get("NonStructuralSchema", "False") == "False"
            return
        await asyncio.sleep(0.01)


def check(definitions, least):
    assert len(definitions) >= least

    async def all_served():
        async with api_server(Schema.load()) as api:
            for definition in definitions:
                await established(api, definition)
                for version in definition["spec"]["versions"]:
                    if version["served"]:
                        await check_object(api, definition, version)
            listed = await api.get(DEFINITIONS)
            assert len(listed.obj["items"]) == len(definitions)

    virtual_time.run(all_served())


def is_part(value, whole):
    if isinstance(value, dict):
        return all(key in whole and is_part(item, whole[key]) for key, item in value.items())
    return value == whole


async def check_object(api, definition, version):
    path, obj = objects_path(definition, version), sample_object(definition, version)
    while (await api.get(path)).status == 404:
        await asyncio.sleep(0.01)
    reply = await api.post(f"{path}?fieldValidation=Strict", obj)
    assert reply.status == 201, reply.body
    kept = (await api.get(f"{path}/sample")).obj
    assert is_part(obj, kept), kept
    if "spec" in obj:
        wrong = {**obj, "metadata": {"name": "wrong"}, "spec": ["no object"]}
        assert (await api.post(path, wrong)).status == 422
    strange = {**obj, "metadata": {"name": "strange"}, "noSuchField": 1}
    reply = await api.post(f"{path}?fieldValidation=Strict", strange)
    assert reply.status == 400, reply.body
    assert (await api.delete(f"{path}/sample")).status == 200


@pytest.mark.slow
def test_of_dask(dask):
    check(dask, 4)


@pytest.mark.slow
def test_of_forklift(forklift):
    check(forklift, 10)
