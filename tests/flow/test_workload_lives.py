"""Lives of workloads, step by step, beside those on record of an original v1.35 control plane.

Kept differences are listed with their reason; docs/compatibility.md says the same to users.
"""

from pathlib import Path

import pytest

from tests.support.workload_lives.in_process import lived
from tests.support.workload_lives.recordings import differences, read
from tests.support.workload_lives.scenarios.all_lives import LIVES

RECORDED = read(Path(__file__).parent / "recorded" / "workload_lives.json.gz")
# By life: the paths that differ on purpose, and why.
KEPT: dict[str, dict[str, str]] = {}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_life_is_what_it_is_on_the_original(name):
    found = differences(RECORDED[name], lived(name, LIVES[name]))
    kept = KEPT.get(name, {})
    wrong = [one for one in found if not one.path.startswith(tuple(kept))]
    assert not wrong, "\n".join(str(one) for one in wrong)
    gone = [path for path in kept if not any(one.path.startswith(path) for one in found)]
    assert not gone, "a kept difference is gone"
