"""CDI: what the names of devices stand for."""

import json
import os

import pytest

from sampan.runtime import cdi

SPEC = {
    "cdiVersion": "0.6.0",
    "kind": "example.com/gpu",
    "containerEdits": {"env": ["ALL=yes"]},
    "devices": [
        {
            "name": "one",
            "containerEdits": {
                "env": ["GPU=one", "PATH=/gpu"],
                "deviceNodes": [
                    {"path": "/dev/gpu0", "hostPath": "/dev/null", "permissions": "rw"}
                ],
                "mounts": [{"hostPath": "/lib/gpu", "containerPath": "/gpu"}],
                "hooks": [{"hookName": "createContainer", "path": "/bin/x", "args": ["x", "y"]}],
                "additionalGids": [44],
            },
        },
        {"name": "two", "containerEdits": {"env": ["GPU=two"]}},
    ],
}  # fmt: skip


@pytest.fixture
def places(tmp_path):
    static, dynamic = tmp_path / "static", tmp_path / "dynamic"
    static.mkdir()
    dynamic.mkdir()
    return static, dynamic


def container():
    return {"process": {"env": ["PATH=/bin", "A=b"], "user": {"uid": 0}}, "mounts": []}


def test_a_device_is_applied_whole(places):
    (places[0] / "gpu.json").write_text(json.dumps(SPEC))
    found = cdi.read([str(place) for place in places])
    spec = container()
    cdi.apply(cdi.edits_of(["example.com/gpu=one", "example.com/gpu=two"], found), spec)
    assert spec["process"]["env"] == ["PATH=/gpu", "A=b", "ALL=yes", "GPU=two"]
    assert spec["process"]["user"]["additionalGids"] == [44]
    null = os.stat("/dev/null")
    [device] = spec["linux"]["devices"]
    assert (device["path"], device["type"], device["major"], device["minor"]) == (
        "/dev/gpu0", "c", os.major(null.st_rdev), os.minor(null.st_rdev),
    )  # fmt: skip
    assert spec["linux"]["resources"]["devices"][0]["access"] == "rw"
    assert spec["mounts"] == [
        {"destination": "/gpu", "source": "/lib/gpu", "type": "bind", "options": ["rbind", "ro"]}
    ]
    assert spec["hooks"] == {"createContainer": [{"path": "/bin/x", "args": ["x", "y"]}]}


def test_the_dynamic_directory_wins_and_two_files_of_one_directory_cancel_each_other(places):
    static, dynamic = places
    (static / "a.json").write_text(json.dumps(SPEC))
    newer = {**SPEC, "devices": [{"name": "one", "containerEdits": {"env": ["GPU=new"]}}]}
    (dynamic / "a.yaml").write_text(json.dumps(newer))  # JSON is YAML
    directories = [str(place) for place in places]
    spec = container()
    cdi.apply(cdi.edits_of(["example.com/gpu=one"], cdi.read(directories)), spec)
    assert "GPU=new" in spec["process"]["env"]
    (dynamic / "b.json").write_text(json.dumps(newer))
    with pytest.raises(cdi.CdiFailure, match=r"unresolvable CDI devices example\.com/gpu=one"):
        cdi.edits_of(["example.com/gpu=one"], cdi.read(directories))


def test_what_is_not_known_or_not_possible_is_refused(places):
    (places[0] / "bad.json").write_text("{")
    (places[0] / "bad.yaml").write_text("{")
    (places[0] / "note.txt").write_text("no spec")
    with pytest.raises(cdi.CdiFailure, match="unresolvable CDI devices a/b=c"):
        cdi.edits_of(["a/b=c"], cdi.read([str(places[0])]))
    for edit in (
        {"hooks": [{"hookName": "never"}]},
        {"deviceNodes": [{"path": "/dev/nothing-like-that"}]},
        {"deviceNodes": [{"path": "/etc/hostname"}]},
        {"intelRdt": {"closID": "x"}},
    ):
        with pytest.raises(cdi.CdiFailure):
            cdi.apply([edit], container())


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (["A=b", "HOME=/"], ["A=b", "GPU=one", "HOME=/"]),  # the runtime's own
        (["HOME=/me", "A=b"], ["HOME=/me", "A=b", "GPU=one"]),  # the image's
    ],
)
def test_home_that_the_runtime_found_out_stays_last(env, expected):
    """[H3] upstream's tests of DRA look for a device's variable and the line's end after it."""
    spec = {"process": {"env": env, "user": {"uid": 0}}}
    cdi.apply([{"env": ["GPU=one"]}], spec)
    assert spec["process"]["env"] == expected


def test_home_of_a_device_is_its_own():
    spec = {"process": {"env": ["A=b", "HOME=/"], "user": {"uid": 0}}}
    cdi.apply([{"env": ["HOME=/gpu"]}], spec)
    assert spec["process"]["env"] == ["A=b", "HOME=/gpu"]
