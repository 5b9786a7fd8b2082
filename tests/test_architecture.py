"""The import table of ARCHITECTURE.md, kept true: who may know whom."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sampan"
DESIGN = {
    "core": set(),
    "api": {"core"},
    "store": {"core"},
    "apiserver": {"store", "api", "core"},
    "client": {"api", "core"},
    "cli": {"client", "api", "core"},
    "scheduler": {"client", "api", "core"},
    "cri": {"core"},
    "runtime": {"core"},
    "kubelet": {"cri", "runtime", "client", "api", "core"},
    "controllers": {"client", "api", "core"},
    "network": {"client", "api", "core"},
    "cmd": {
        "core", "api", "store", "apiserver", "client", "scheduler", "cri", "kubelet",
        "controllers", "network", "cli", "runtime",
    },
    "testing": {
        "core", "api", "store", "apiserver", "client", "scheduler", "cri", "kubelet",
        "controllers", "network", "cmd", "cli", "runtime",
    },
}  # fmt: skip
# The one library that a core module wraps; nobody else may import it.
WRAPPED = {
    "httptools": {"core/http/"},
    "grpc": {
        "cri/",
        "store/etcd_client.py",
        "kubelet/probes/grpc_health.py",
        "core/telemetry/otlp_grpc.py",
    },
    "sqlite3": {"store/sqlite"},
    "numpy": {"scheduler/"},
    "uvloop": {"cmd/"},
}
GENERATED = {"gen", "etcd_gen"}
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if not GENERATED & set(path.parts))


# Inside a part, who may import whom. A folder or module imports those before it in its line, never
# one after it; a module that is named by itself stands where it is named, not with its folder.
LAYERS = {
    "api": (
        "objects configuration errors quantity versions resources kinds calls schema.field_kinds "
        "decode schema log_options strict_json strict_yaml rules cel custom defaults validation "
        "warnings convert patch protobuf apply"
    ),
    "api/cel": (
        "field_names language libraries literals catalog program schema_objects admission "
        "policies evaluation devices json_form type_checking"
    ),
    "apiserver": (
        "authn.user http.request outside audit authn.settings admission.settings authz.settings "
        "authn settings authn.options flow storage watch registry "
        "extension.conversion_webhook extension.conversion authz admission write extension "
        "aggregation printers openapi http chain subresources proxy inprocess_edge http_edge server"
    ),
    "apiserver/admission": (
        "settings chain parts matching builtin pod_security quota webhooks policies loaders plugins"
    ),
    "kubelet": (
        "contracts cgroups eviction.eviction_rules eviction.storage_limits node.shutdown_steps "
        "images simulated.script simulated.scenario settings context node.machine "
        "configuration stats status container_spec probes volumes eviction runtime "
        "containerd streams native pods sources node simulated server node_parts kubelet"
    ),
    "scheduler": (
        "model devices cache filters scores plugin profile measured_profile queue.requeue "
        "queue.queue_state settings config decision queue metrics preemption why extenders binding "
        "preemption.preemption loop"
    ),
    "controllers": (
        "actions controller identities expectations perform runner workloads jobs autoscaling "
        "nodes services storage access cluster catalog"
    ),
    "cmd": (
        "errors loading help_screen flags.values flags.security settings flags tour.originals "
        "tour.lesson simulation background rootless cluster foreground diagnosis tour snapshot lab "
        "reference verbs main entry"
    ),
}
MOST_MODULES = 25  # of one folder: more is a drawer, not a room
MOST_LINES, MOST_PARAMETERS, MOST_BRANCHES = 60, 6, 15  # of one function
BRANCHING_FUNCTIONS = 10  # may branch more ways


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def parts_imported(path: Path) -> set[str]:
    """The parts of sampan that a file imports, lazily or not."""
    return {
        name.split(".")[1]
        for name in modules_imported(path)
        if name.startswith("sampan.") and name.split(".")[1] != "version"
    }


@functools.cache
def modules_imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("part", sorted(DESIGN))
def test_a_part_imports_only_what_the_table_allows(part):
    for path in SOURCES:
        relative = path.relative_to(PACKAGE)
        if relative.parts[0] == part:
            foreign = parts_imported(path) - DESIGN[part] - {part}
            assert not foreign, f"{relative} imports {sorted(foreign)}"


def test_every_part_is_in_the_table():
    parts = {path.relative_to(PACKAGE).parts[0] for path in SOURCES if path.parent != PACKAGE}
    assert parts <= set(DESIGN)


@pytest.mark.parametrize("library", sorted(WRAPPED))
def test_a_library_is_imported_only_by_the_module_that_wraps_it(library):
    for path in SOURCES:
        relative = path.relative_to(PACKAGE).as_posix()
        if any(name.split(".")[0] == library for name in modules_imported(path)):
            assert any(relative.startswith(allowed) for allowed in WRAPPED[library]), relative


def test_only_the_commands_read_the_environment():
    for path in SOURCES:
        relative = path.relative_to(PACKAGE)
        if relative.parts[0] not in {"cmd", "cli", "testing"}:
            assert not re.search(r"os\.(environ|getenv)|sys\.argv", path.read_text()), relative


def module_name(path: Path) -> str:
    name = ".".join(("sampan", *path.relative_to(PACKAGE).with_suffix("").parts))
    return name.removesuffix(".__init__")


MODULES = {module_name(path): path for path in SOURCES}


def imports_of(path: Path) -> set[str]:
    """The modules of sampan that a module imports, lazily or for its types alone included."""
    found = set()
    for name in modules_imported(path):
        parent = name.rpartition(".")[0]
        found |= {name if name in MODULES else parent} & MODULES.keys()
    return found - {module_name(path)}


@functools.cache
def graph() -> dict[str, set[str]]:
    """Made by the tests that ask for it: whoever collects them need not parse every module."""
    return {name: imports_of(path) for name, path in MODULES.items()}


def cycle_from(start: str, done: set[str]) -> list[str]:
    """Depth first; the first way that comes back to where it has been."""
    path, iterators = [start], [iter(sorted(graph()[start]))]
    while iterators:
        for name in iterators[-1]:
            if name in path:
                return [*path[path.index(name) :], name]
            if name not in done:
                path.append(name)
                iterators.append(iter(sorted(graph()[name])))
                break
        else:
            iterators.pop()
            done.add(path.pop())
    return []


def test_there_is_no_import_cycle():
    done: set[str] = set()
    for name in sorted(graph()):
        if name not in done:
            found = cycle_from(name, done)
            assert not found, " → ".join(found)


def layer_of(module: str, layers: list[str]) -> str:
    [*fitting] = [one for one in layers if f"{module}.".startswith(f"{one}.")]
    assert fitting, f"{module} is in no layer of its part"
    return max(fitting, key=len)


@pytest.mark.parametrize("part", sorted(LAYERS))
def test_inside_a_part_imports_go_down(part):
    layers, prefix = LAYERS[part].split(), f"sampan.{part.replace('/', '.')}."
    for name, imported in graph().items():
        if name.startswith(prefix):
            own = layers.index(layer_of(name.removeprefix(prefix), layers))
            for other in imported:
                if other.startswith(prefix):
                    layer = layer_of(other.removeprefix(prefix), layers)
                    assert layers.index(layer) <= own, f"{name} imports {other}"


def test_no_folder_is_a_drawer():
    for folder in {path.parent for path in SOURCES}:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES, f"{folder}: {len(modules)} modules"


def is_pure(path: Path) -> bool:
    """By its place, by its name, or because it says so itself."""
    relative = path.relative_to(PACKAGE)
    by_name = path.stem in {"plan", "decide"} or path.stem.endswith(("_state", "_rules"))
    first = (ast.get_docstring(tree_of(path)) or "").partition("\n\n")[0]
    return relative.parts[0] == "api" or by_name or " Pure." in first.replace("\n", " ")


IMPURE = {"sampan.core.log", "sampan.core.clock", "sampan.core.tasks", "asyncio", "time", "logging"}


def test_pure_code_has_no_clock_no_await_and_no_log():
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    for path in filter(is_pure, SOURCES):
        assert not any(isinstance(node, waits) for node in ast.walk(tree_of(path))), path
        for name in modules_imported(path):
            assert not {name, name.rpartition(".")[0]} & IMPURE, f"{path}: {name}"


def test_broad_excepts_live_in_two_files_only():
    allowed = {"core/tasks.py", "controllers/runner.py"}
    for path in SOURCES:
        relative = path.relative_to(PACKAGE).as_posix()
        if relative not in allowed:
            assert not re.search(r"except( Base)?( ?\(?)Exception\b", path.read_text()), relative


def test_every_module_opens_with_its_job():
    for path in SOURCES:
        if path.name != "__init__.py":
            assert ast.get_docstring(tree_of(path)), path


def test_unit_tests_mirror_the_sources():
    """A unit test is found by its module's path, and none tests a module that is gone."""
    for test in (ROOT / "tests" / "unit").rglob("test_*.py"):
        relative = test.relative_to(ROOT / "tests" / "unit")
        module = relative.with_name(relative.name.removeprefix("test_"))
        package = (PACKAGE / module).with_suffix("")
        whole = module.name == "corpus.py"  # tests a package, with manifests from files
        assert (PACKAGE / module).exists() or package.is_dir() or whole, f"{relative}: of what?"


def test_the_import_table_in_the_documentation_is_this_one():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for part, allowed in DESIGN.items():
        if part in {"cmd", "testing"}:
            continue
        line = re.search(rf"^\| `{part}/` \|([^|]*)\|", text, re.M)
        assert line, f"ARCHITECTURE.md has no row for {part}/"
        assert set(re.findall(r"[a-z]+", line.group(1))) - {"nothing"} == allowed, part


def test_dataclasses_come_from_the_decorator_that_is_cheap_to_import():
    for path in SOURCES:
        if path != PACKAGE / "core" / "records.py":
            assert "dataclasses.dataclass" not in modules_imported(path), path


def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (f"{path.relative_to(PACKAGE)}: {node.name}", node)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in named)


def branches(function: ast.AST) -> int:
    """Ways through it: ifs, loops, cases, handlers, and each `and` or `or`."""
    ways = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    count = 0
    for node in ast.iter_child_nodes(function):
        if isinstance(node, inner):
            continue
        count += isinstance(node, ways)
        count += 1 + len(node.ifs) if isinstance(node, ast.comprehension) else 0
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += branches(node)
    return count


def test_functions_are_short():
    long = [name for name, node in functions() if node.end_lineno - node.lineno >= MOST_LINES]
    assert long == []


def test_what_travels_together_is_a_value():
    wide = [name for name, node in functions() if parameters(node) > MOST_PARAMETERS]
    assert len(wide) <= 10, wide


def test_functions_branch_few_ways():
    branching = [name for name, node in functions() if branches(node) > MOST_BRANCHES]
    assert len(branching) <= BRANCHING_FUNCTIONS, branching
