"""C1–C5: the client prints what the original kubectl v1.35 printed, on sampan's API server.

A recorded command is equal when exit code, standard output and standard error are. FLOOR says how
many of a group are today; a change that loses one fails, one that wins some raises it here.
"""

import shutil
import tempfile
from pathlib import Path

import pytest

from tests.client_recording.replay import Replay, api_server, groups, replay_all

FLOOR = {
    "run-dry": 212, "run-live": 34, "create-gen": 273, "create-live": 61, "get": 297,
    "describe": 51, "chg-delete": 60, "chg-apply-basic": 23, "chg-apply-create-first": 7,
    "chg-apply-ssa": 14, "chg-apply-errors": 33, "chg-apply-prune": 4, "chg-apply-kustomize": 4,
    "chg-apply-deploy": 8, "chg-label": 33, "chg-scale": 21, "chg-set-image": 24,
    "chg-set-env": 29, "chg-set-misc": 18, "chg-rollout": 49, "chg-expose": 34,
    "chg-autoscale": 21, "chg-taint": 26, "chg-edit": 20, "chg-diff": 12, "chg-replace": 20,
    "chg-certs": 6, "auth-misc": 158, "config": 68, "explain": 11, "chg-help": 61,
    "config-multi": 169, "config-none": 12, "config-bad": 129, "complete": 69,
    "kuberc": 241, "kuberc-live": 11, "composed": 25,
}  # fmt: skip


@pytest.fixture(scope="module")
def results():
    root = Path(tempfile.mkdtemp(prefix="recording-"))
    cluster = api_server(root)
    try:
        replay = Replay(cluster.kubeconfig, root / "home")
        replay.prepare()
        yield replay_all(replay)
    finally:
        cluster.stop()
        shutil.rmtree(root, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("group", groups())
def test_equal_to_the_original(results, group):
    equal, total, different = results[group]
    print(f"{group}: {equal} of {total} equal")
    lines = "\n".join(f"#{seq} {' '.join(args)}" for seq, args, _ in different)
    assert equal >= FLOOR.get(group, 0), f"{group}: only {equal} of {total}\n{lines}"


@pytest.mark.slow
def test_no_recorded_command_ends_in_a_traceback(results):
    broken = [
        (seq, args)
        for _, _, different in results.values()
        for seq, args, text in different
        if text.startswith("TRACEBACK")
    ]
    assert not broken
