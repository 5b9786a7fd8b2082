import json
import shutil

import pytest

from sampan.kubelet.container_spec.user_namespaces import NoIdsLeft, UserNamespaces
from sampan.kubelet.contracts.runtime import IdRange


def test_every_pod_has_ids_of_its_own_that_stay_and_come_back(tmp_path):
    users = UserNamespaces(str(tmp_path))
    assert users.range_of("a") == IdRange(65536, 65536)
    assert users.range_of("b") == IdRange(131072, 65536)
    assert UserNamespaces(str(tmp_path)).range_of("b") == IdRange(131072, 65536)
    record = json.loads((tmp_path / "pods/a/userns").read_text())
    mapping = {"hostId": 65536, "containerId": 0, "length": 65536}
    assert record == {"uidMappings": [mapping], "gidMappings": [mapping]}
    shutil.rmtree(tmp_path / "pods/a")
    assert users.range_of("c") == IdRange(65536, 65536)


def test_a_record_that_cannot_be_read_is_written_anew(tmp_path):
    (tmp_path / "pods/a").mkdir(parents=True)
    (tmp_path / "pods/a/userns").write_text("{")
    assert UserNamespaces(str(tmp_path)).range_of("a") == IdRange(65536, 65536)


def test_ids_that_cannot_be_recorded_are_not_given(tmp_path):
    (tmp_path / "pods").write_text("a file where a directory should be")
    with pytest.raises(NoIdsLeft, match="cannot be recorded"):
        UserNamespaces(str(tmp_path)).range_of("a")
