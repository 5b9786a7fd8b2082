"""The code of all our modules in one file, beside the package: a start opens that alone.

Job: find and load the modules of a package, and those of Python's own library that it uses, from
    the file; write it anew when something was missing.
Invariant: the rule of __pycache__: a module whose source is not as it was (time, size) is not taken
    from here, nor is anything of another Python or another place; Python imports it as ever.
Invariant: whatever is wrong with the file, a start only takes longer. It is not kept open (who goes
    to the background closes what he does not know), and a block of it only until `let_go`: memory
    that a start touches once is what its imports take longest for, after their code.
Invariant: it has the name of what Python caches for all_modules.py, so that pip removes it.
"""

import contextlib
import marshal
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import TypeAlias

# Where its code begins and ends, the time and size of its source, whether it is a package, and
# which file its source is.
Entry: TypeAlias = tuple[int, int, int, int, bool, str]
Index: TypeAlias = dict[str, Entry]
_BLOCK_BYTES = 64 * 1024  # read at once: modules lie there in the order in which they are loaded
_PYC_HEADER = 16  # magic, flags, time and size of the source
_LENGTH_BYTES = 8
_BROKEN = (ValueError, EOFError, TypeError, OSError)


class CompiledModules:
    """A finder for `sys.meta_path`."""

    def __init__(self, package: str, directory: str, library: str = "") -> None:
        """`directory`: of the package; `library`: of Python's own modules, where they are wanted,
        too."""
        self._package, self._directory, self._library = package, directory, library
        self._index: Index = {}
        self._codes: _Codes | None = None
        self._asked: dict[str, None] = {}  # in order
        tag = sys.implementation.cache_tag
        self._file = os.path.join(directory, "__pycache__", f"all_modules.{tag}.pyc")

    def open(self) -> bool:
        """Whether there is a file that is of use here."""
        try:
            with open(self._file, "rb", buffering=0) as file:
                length = int.from_bytes(file.read(_LENGTH_BYTES), "big")
                made_for, index = marshal.loads(file.read(length))
                state = _identity_of(file.fileno())
        except (*_BROKEN, OverflowError, MemoryError):
            return False
        if made_for != self._made_for():
            return False
        self._index, self._codes = index, _Codes(self._file, _LENGTH_BYTES + length, state)
        return True

    def let_go(self) -> None:
        """What is imported from now on is not taken from the file."""
        self._index, self._codes, self._asked = {}, None, {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        self._asked[name] = None
        entry = self._index.get(name)
        if entry is None:
            return None
        begin, end, modified, size, is_package, file = entry
        if _state_of(file) != (modified, size) or self._codes is None:
            return None
        code = self._codes.read(begin, end)
        if code is None:
            return None
        loader = _Loader(name, file, code)
        # Without a location: what a module says of its file is quicker set by the loader.
        spec = ModuleSpec(name, loader, origin=file, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec

    def write_if_incomplete(self) -> bool:
        """What this process has loaded of the package is in the file the next time."""
        if sys.dont_write_bytecode or sys.flags.optimize:
            return False
        known = {name: entry for name, entry in self._index.items() if _is_good(entry)}
        sources = {name: source for name, source in self._loaded() if name not in known}
        found = {name: _new(source) for name, source in sources.items()}
        new = {name: code for name, code in found.items() if code is not None}
        if new:
            codes = self._kept(known) | new
            # As they were asked for: a module before what it imports, so they are read in turn.
            order = [name for name in dict.fromkeys((*self._asked, *codes)) if name in codes]
            with contextlib.suppress(OSError):  # a directory that may only be read
                self._write({name: codes[name] for name in order})
        return bool(new)

    def _write(self, codes: "dict[str, tuple[bytes, Entry]]") -> None:
        index: Index = {}
        at = 0
        for name, (code, (_, _, modified, size, is_package, source)) in codes.items():
            index[name] = (at, at + len(code), modified, size, is_package, source)
            at += len(code)
        head = marshal.dumps((self._made_for(), index))
        temporary = f"{self._file}.{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(len(head).to_bytes(_LENGTH_BYTES, "big") + head)
            file.writelines(code for code, _ in codes.values())
        os.replace(temporary, self._file)

    def _kept(self, known: Index) -> "dict[str, tuple[bytes, Entry]]":
        """What of them the file still has."""
        codes = self._codes
        found = {
            name: (codes.read(*entry[:2]) if codes is not None else None, entry)
            for name, entry in known.items()
        }
        return {name: (bytes(code), entry) for name, (code, entry) in found.items() if code}

    def _loaded(self) -> Iterator[tuple[str, str]]:
        """Names and sources."""
        for name, module in list(sys.modules.items()):
            source = getattr(module, "__file__", None) or ""
            root = name.partition(".")[0]
            if root == self._package:
                place = f"{self._directory}/"
            elif self._library and root in sys.stdlib_module_names:
                place = f"{self._library}/{name.replace('.', '/')}"
            else:
                continue
            if source.startswith(place) and source.endswith(".py"):
                yield name, source

    def _made_for(self) -> tuple[str, str, str]:
        return self._package, self._directory, f"{sys.version} {self._library}"


class _Codes:
    """What is behind the index, by blocks. Another file of that name is another file."""

    __slots__ = ("_at", "_begin", "_block", "_file", "_state")

    def __init__(self, file: str, begin: int, state: "tuple[int, ...]") -> None:
        self._file, self._begin, self._state = file, begin, state
        self._at, self._block = 0, memoryview(b"")

    def read(self, begin: int, end: int) -> memoryview | None:
        """None where it is not there (any more)."""
        at = begin - self._at
        if at < 0 or end - self._at > len(self._block):
            if not self._read(begin, max(end - begin, _BLOCK_BYTES)):
                return None
            at = 0
        return self._block[at : at + end - begin]

    def _read(self, begin: int, length: int) -> bool:
        try:
            descriptor = os.open(self._file, os.O_RDONLY)
        except OSError:
            return False
        try:
            is_same = _identity_of(descriptor) == self._state
            block = os.pread(descriptor, length, self._begin + begin) if is_same else b""
        except OSError:
            return False
        finally:
            os.close(descriptor)
        self._at, self._block = begin, memoryview(block)
        return is_same


class _Loader(SourceFileLoader):
    """As Python's own, but for where the code comes from."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self._code: memoryview | None = code

    def exec_module(self, module: ModuleType) -> None:
        code, self._code = self._code, None
        if code is None:  # somebody loads it again
            return super().exec_module(module)
        try:
            body = marshal.loads(code)
        except _BROKEN:
            return super().exec_module(module)
        module.__file__ = self.path
        exec(body, module.__dict__)
        return None


def _new(source: str) -> "tuple[bytes, Entry] | None":
    state = _state_of(source)
    code = None if state is None else _compiled(source, *state)
    if state is None or code is None:
        return None
    return code, (0, 0, *state, source.endswith("/__init__.py"), source)


def _is_good(entry: Entry) -> bool:
    return _state_of(entry[5]) == entry[2:4]


def _state_of(file: str) -> tuple[int, int] | None:
    """Its time and size; None where there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _identity_of(descriptor: int) -> tuple[int, ...]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _pyc_path(file: str) -> str:
    directory, name = os.path.split(file)
    return f"{directory}/__pycache__/{name[:-3]}.{sys.implementation.cache_tag}.pyc"


def _compiled(source: str, modified: int, size: int) -> bytes | None:
    """What Python has compiled of this source, under this name; None where that is another one, or
    checked by its hash."""
    try:
        with open(_pyc_path(source), "rb") as file:
            compiled = file.read()
        body = marshal.loads(compiled[_PYC_HEADER:])
    except _BROKEN:
        return None
    if compiled[:_PYC_HEADER] != _pyc_header(modified, size):
        return None
    if body.co_filename != source:  # compiled by another way to it, which errors would show
        with open(source, "rb") as text:
            body = compile(text.read(), source, "exec", dont_inherit=True)
    return marshal.dumps(body)


def _pyc_header(modified: int, size: int) -> bytes:
    from importlib.util import MAGIC_NUMBER

    seconds = modified // 1_000_000_000
    fields = (0, seconds & 0xFFFFFFFF, size & 0xFFFFFFFF)
    return MAGIC_NUMBER + b"".join(field.to_bytes(4, "little") for field in fields)
