from sampan.network.overlay.overlay import record, recorded
from sampan.network.overlay.routes import PodRoute


def test_routes_are_found_again_by_whoever_removes_them(tmp_path):
    assert recorded(tmp_path) == {}
    route = PodRoute("10.244.1.0/24", "192.0.2.2", True)
    record(tmp_path, [route])
    assert recorded(tmp_path) == {route.cidr: route}


def test_a_damaged_record_is_no_reason_to_stop(tmp_path):
    (tmp_path / "pod-routes.json").write_text("[{]")
    assert recorded(tmp_path) == {}
