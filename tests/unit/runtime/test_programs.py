"""runtime/programs.py: where programs are looked for."""

from sampan.runtime.programs import system_path


def test_the_path_has_the_system_s_directories():
    assert system_path({"PATH": "/mine"}).startswith("/mine:")
    assert "/usr/sbin" in system_path({})
