"""Whom the plugin manager registers and lets go."""

from sampan.kubelet.plugin_manager.plugin_state import Deregister, Plugin, Register, next_steps

OLD, NEW = (1, 10), (2, 20)


def plugin(path, stamp=OLD):
    return Plugin(path, stamp, "CSIPlugin", "a.example.com", path)


def test_a_new_socket_is_registered_and_one_that_went_is_let_go():
    steps = next_steps({"/r/new": NEW}, {"/r/old": plugin("/r/old")}, (), {})
    assert steps == [Deregister(plugin("/r/old")), Register("/r/new", NEW)]


def test_a_socket_made_anew_is_let_go_first_and_registered_afterwards():
    found, registered = {"/r/a": NEW}, {"/r/a": plugin("/r/a")}
    assert next_steps(found, registered, (), {}) == [Deregister(plugin("/r/a"))]
    assert next_steps(found, {}, {"/r/a"}, {}) == []
    assert next_steps(found, {}, (), {}) == [Register("/r/a", NEW)]


def test_what_is_registered_needs_nothing():
    assert next_steps({"/r/a": OLD}, {"/r/a": plugin("/r/a")}, (), {}) == []


def test_one_that_failed_is_held_back_until_it_is_another():
    assert next_steps({"/r/a": OLD}, {}, (), {"/r/a": OLD}) == []
    assert next_steps({"/r/a": NEW}, {}, (), {"/r/a": OLD}) == [Register("/r/a", NEW)]
