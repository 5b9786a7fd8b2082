"""core/compiled_modules.py: modules from one file, never other ones than Python would import."""

import importlib
import importlib.util
import os
import py_compile
import sys
from pathlib import Path

import pytest

from sampan.core import compiled_modules
from sampan.core.compiled_modules import CompiledModules

SOURCES = {
    "__init__.py": "",
    "one.py": "from boat.deck.two import value\n",
    "deck/__init__.py": "kind = 'package'\n",
    "deck/two.py": "value = 'compiled'\n",
}


@pytest.fixture
def boat(tmp_path, monkeypatch):
    """A package whose modules are compiled, as after a first import."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name, text in SOURCES.items():
        path = tmp_path / "boat" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        py_compile.compile(str(path))
    yield tmp_path / "boat"
    forget()


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "boat"]:
        del sys.modules[name]


def written(boat):
    importlib.import_module("boat.one")
    assert CompiledModules("boat", str(boat)).write_if_incomplete()
    forget()
    [file] = boat.glob("__pycache__/all_modules.*")
    return file


@pytest.fixture
def finder(boat, monkeypatch):
    written(boat)
    found = CompiledModules("boat", str(boat))
    assert found.open()
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    return found


def loader_of(name):
    return type(importlib.import_module(name).__spec__.loader).__name__


def test_modules_and_packages_come_from_the_file_and_look_as_ever(finder, boat):
    for compiled in boat.rglob("*.pyc"):
        if not compiled.name.startswith("all_modules."):
            compiled.unlink()
    two = importlib.import_module("boat.deck.two")
    assert (two.value, loader_of("boat.deck.two")) == ("compiled", "_Loader")
    assert two.__file__ == str(boat / "deck" / "two.py")
    assert importlib.import_module("boat.deck").__path__ == [str(boat / "deck")]
    assert importlib.import_module("boat.one").value == "compiled"
    assert two.__loader__.get_source("boat.deck.two") == SOURCES["deck/two.py"]
    assert importlib.reload(two).value == "compiled"


def test_a_source_that_has_changed_is_imported_as_ever(finder, boat):
    (boat / "deck" / "two.py").write_text("value = 'changed'\n")
    assert importlib.import_module("boat.one").value == "changed"
    assert loader_of("boat.deck.two") == "SourceFileLoader"
    assert loader_of("boat.deck") == "_Loader"


def test_the_same_size_at_another_time_is_a_change(finder, boat):
    path = boat / "deck" / "two.py"
    path.write_text("value = 'Compiled'\n")
    later = os.stat(path).st_mtime_ns + 5_000_000_000
    os.utime(path, ns=(later, later))
    assert importlib.import_module("boat.one").value == "Compiled"


def test_a_file_that_is_gone_or_another_one_meanwhile_is_not_read(finder, boat, monkeypatch):
    monkeypatch.setattr(compiled_modules, "_BLOCK_BYTES", 1)
    assert loader_of("boat.deck") == "_Loader"
    [file] = boat.glob("__pycache__/all_modules.*")
    whole = file.read_bytes()
    file.unlink()
    assert loader_of("boat.deck.two") == "SourceFileLoader"
    file.write_bytes(whole)  # another file
    assert loader_of("boat.one") == "SourceFileLoader"


def test_modules_lie_in_the_order_in_which_they_are_read(boat, monkeypatch):
    first = CompiledModules("boat", str(boat))
    assert not first.open()
    monkeypatch.setattr(sys, "meta_path", [first, *sys.meta_path])
    importlib.import_module("boat.one")
    assert first.write_if_incomplete()
    [file] = boat.glob("__pycache__/all_modules.*")
    written = file.read_bytes()
    places = [written.rfind(str(boat / name).encode()) for name in ("one.py", "deck/two.py")]
    assert 0 < places[0] < places[1]


def test_what_a_start_asks_for_first_comes_first_when_the_file_is_written_again(boat, finder):
    (boat / "three.py").write_text("import boat.one\n")
    py_compile.compile(str(boat / "three.py"))
    importlib.invalidate_caches()
    importlib.import_module("boat.three")
    assert finder.write_if_incomplete()
    [file] = boat.glob("__pycache__/all_modules.*")
    written = file.read_bytes()
    names = ("three.py", "one.py", "deck/two.py")
    places = [written.rfind(str(boat / name).encode()) for name in names]
    assert 0 < places[0] < places[1] < places[2]


def test_a_module_that_is_gone_is_gone(finder, boat):
    (boat / "deck" / "two.py").unlink()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("boat.deck.two")


def test_what_was_let_go_is_not_asked_any_more(finder):
    finder.let_go()
    assert loader_of("boat.one") == "SourceFileLoader"


@pytest.mark.parametrize("length", [0, 3, 20, 60])
def test_a_file_that_was_cut_short_is_of_no_use(boat, length):
    file = written(boat)
    file.write_bytes(file.read_bytes()[:length])
    assert not CompiledModules("boat", str(boat)).open()


def test_code_that_is_damaged_is_compiled_from_its_source(boat, monkeypatch):
    file = written(boat)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 30])
    found = CompiledModules("boat", str(boat))
    assert found.open()
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    assert importlib.import_module("boat.one").value == "compiled"


def test_what_was_made_for_another_python_or_place_is_of_no_use(boat, tmp_path, monkeypatch):
    file = written(boat)
    (tmp_path / "moved" / "__pycache__").mkdir(parents=True)
    (tmp_path / "moved" / "__pycache__" / file.name).write_bytes(file.read_bytes())
    assert not CompiledModules("boat", str(tmp_path / "moved")).open()
    monkeypatch.setattr(sys, "version", "another")
    assert not CompiledModules("boat", str(boat)).open()


def test_it_is_written_again_only_where_something_was_missing(finder, boat):
    importlib.import_module("boat.one")
    assert not finder.write_if_incomplete()
    (boat / "three.py").write_text("value = 3\n")
    py_compile.compile(str(boat / "three.py"))
    importlib.invalidate_caches()
    importlib.import_module("boat.three")
    assert finder.write_if_incomplete()
    again = CompiledModules("boat", str(boat))
    assert again.open()
    assert again.find_spec("boat.three") is not None
    assert again.find_spec("boat.deck.two") is not None


def test_who_wants_no_compiled_files_gets_none(boat, monkeypatch):
    importlib.import_module("boat.one")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert not CompiledModules("boat", str(boat)).write_if_incomplete()
    assert not list(boat.glob("__pycache__/all_modules.*"))


def test_a_compiled_file_of_another_source_is_left_out(boat):
    importlib.import_module("boat.one")
    (boat / "deck" / "two.py").write_text("value = 'written since'\n")
    modules = CompiledModules("boat", str(boat))
    assert modules.write_if_incomplete()
    assert modules.open()
    assert modules.find_spec("boat.deck.two") is None
    assert modules.find_spec("boat.one") is not None


def test_errors_show_the_file_however_it_was_compiled(boat, tmp_path, monkeypatch):
    path = boat / "deck" / "two.py"
    path.write_text("def where():\n    return where.__code__.co_filename\nvalue = where()\n")
    monkeypatch.chdir(tmp_path)
    py_compile.compile("boat/deck/two.py")
    written(boat)
    found = CompiledModules("boat", str(boat))
    assert found.open()
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    assert (importlib.import_module("boat.one").value, loader_of("boat.deck.two")) == (
        str(path),
        "_Loader",
    )


def test_python_s_own_modules_are_in_the_file_where_they_are_wanted(boat, tmp_path, monkeypatch):
    """A library with one module, by a name that nobody has imported."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "antigravity.py").write_text("height = 12\n")
    (library / "stranger.py").write_text("")
    for name in ("antigravity", "stranger"):
        py_compile.compile(str(library / f"{name}.py"))
    monkeypatch.syspath_prepend(str(library))
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    for name in ("antigravity", "stranger"):
        importlib.import_module(name)
    assert CompiledModules("boat", str(boat), str(library)).write_if_incomplete()
    found = CompiledModules("boat", str(boat), str(library))
    assert found.open()
    assert found.find_spec("antigravity").origin == str(library / "antigravity.py")
    assert found.find_spec("stranger") is None
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    del sys.modules["antigravity"], sys.modules["stranger"]
    assert loader_of("antigravity") == "_Loader"
    del sys.modules["antigravity"]
    assert not CompiledModules("boat", str(boat)).open()


def test_the_file_goes_with_a_module_that_pip_removes(boat):
    """What pip has compiled of that module at the installation is no hindrance."""
    placeholder = boat / "all_modules.py"
    placeholder.write_text('"""Nothing."""\n')
    py_compile.compile(str(placeholder))
    assert not CompiledModules("boat", str(boat)).open()
    assert written(boat) == Path(importlib.util.cache_from_source(str(placeholder)))
    assert CompiledModules("boat", str(boat)).open()
    assert importlib.util.find_spec("sampan.all_modules") is not None
