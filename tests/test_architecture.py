"""The import table of ARCHITECTURE.md, kept true: who may know whom."""

import ast
import functools
import json
import re
from pathlib import Path

import pytest

from sampan.api.gated_fields.dropping import GATES
from tests.support import hand_written_memos

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
    "plugins": {"core"},
    "drivers": {"plugins", "client", "api", "core"},
    "runtime": {"core"},
    "kubelet": {"cri", "plugins", "runtime", "client", "api", "core"},
    "controllers": {"client", "api", "core"},
    "network": {"client", "api", "core"},
    "cmd": {
        "core", "api", "store", "apiserver", "client", "scheduler", "cri", "plugins",
        "drivers", "kubelet", "controllers", "network", "cli", "runtime",
    },
    "testing": {
        "core", "api", "store", "apiserver", "client", "scheduler", "cri", "plugins",
        "drivers", "kubelet", "controllers", "network", "cmd", "cli", "runtime",
    },
}  # fmt: skip
# The one library that a core module wraps; nobody else may import it.
WRAPPED = {
    "httptools": {"core/http/"},
    "grpc": {
        "core/grpc/",
        "store/etcd_client.py",
        "kubelet/probes/grpc_health.py",
        "core/telemetry/otlp_grpc.py",
    },
    "sqlite3": {"store/sqlite"},
    "numpy": {"scheduler/", "controllers/workloads/template_hash.py"},
    "uvloop": {"cmd/"},
}
GENERATED = {"gen", "etcd_gen"}
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if not GENERATED & set(path.parts))


# Inside a part, who may import whom. A folder or module imports those before it in its line, never
# one after it; a module that is named by itself stands where it is named, not with its folder.
LAYERS = {
    "api": (
        "feature_gates features versioned_data objects configuration go_quoting errors go_base64 "
        "bare_answers quantity versions resources served kinds calls schema.field_kinds "
        "schema.message_table decode_scalars schema.decode_errors decode schema log_options "
        "json_bounds json_reading strict_json strict_yaml go_text go_template json_path rules "
        "zpages cel custom gated_fields defaults validation warnings device_versions convert patch "
        "protobuf apply"
    ),
    "api/cel": (
        "field_names language libraries literals catalog program schema_objects admission "
        "policies evaluation devices json_form type_checking amount_expressions amounts"
    ),
    "apiserver": (
        "authn.user http.request outside audit authn.settings admission.settings authz.settings "
        "authn settings authn.options flow storage watch registry "
        "extension.conversion_webhook extension.conversion authz admission write extension "
        "aggregation printers openapi http chain subresources proxy edge server"
    ),
    "apiserver/admission": (
        "settings admission_metrics chain plugin_initializer matching builtin pod_security quota "
        "webhooks policies loaders plugins"
    ),
    "kubelet": (
        "contracts cgroups eviction.eviction_rules eviction.storage_limits node.shutdown_steps "
        "images simulated.script simulated.scenario simulated.pretence resource_managers.numa "
        "resource_managers.topology_policies resource_managers.cpu_sets "
        "resource_managers.cpu_options resource_managers.manager_settings settings context "
        "node.machine resource_managers.manager_configuration configuration_fields configuration "
        "stats status container_spec probes volumes.ownership volumes.slow_ownership "
        "volumes.storage_operations volumes.tokens plugin_manager csi "
        "volumes stats.volume_figures stats.summary resource_managers device_manager dra "
        "resource_managers.pod_resources eviction runtime "
        "containerd streams native pods sources node_plugins node simulated server node_parts "
        "kubelet"
    ),
    "scheduler": (
        "model devices cache filters scores plugin profile measured_profile queue.requeue "
        "queue.queue_state settings config decision queue metrics intake preemption why extenders "
        "binding preemption.preemption event_handlers loop"
    ),
    "controllers": (
        "actions controller identities expectations perform sync_failures runner scale_targets "
        "workloads jobs autoscaling nodes services storage access cluster stages catalog"
    ),
    "cmd": (
        "errors loading help_screen flags.values flags.api_server_flags settings flags "
        "tour.originals tour.lesson simulation background rootless cluster.table diagnosis cluster "
        "chosen_cluster foreground tour snapshot lab man_page reference "
        "completion verbs main entry"
    ),
}
MOST_MODULES = 25  # of one folder: more is a drawer, not a room
MOST_LINES, MOST_PARAMETERS, MOST_BRANCHES = 60, 6, 15  # of one function
BRANCHING_FUNCTIONS = 10  # may branch more ways


# Where controllers and scheduler count up to something that is neither a constant nor the length of
# what is there, and why that is no number of somebody's object.
COUNTED = {
    "controllers/runner.py": "workers of a controller",
    "controllers/jobs/job_indexes.py": "who asks takes the first so many",
    "controllers/workloads/stateful_pods.py": "who asks takes the first BURST",
    "controllers/jobs/job_pods.py": "missing is BURST at most",
    "scheduler/cache/pod_table.py": "rows that pods have filled",
    "scheduler/scores/rule.py": "percents of a configuration",
}


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


def test_broad_excepts_live_in_three_files_only():
    """Where one of many may fail: a task, an object of a controller, a pod of the scheduler."""
    allowed = {"core/tasks.py", "controllers/runner.py", "scheduler/loop.py"}
    for path in SOURCES:
        relative = path.relative_to(PACKAGE).as_posix()
        if relative not in allowed:
            assert not re.search(r"except( Base)?( ?\(?)Exception\b", path.read_text()), relative


def test_one_module_says_what_digits_are():
    """`"²".isdigit()` is true, and int() fails of it: core/digits.py reads what others wrote."""
    asks = re.compile(r"\.(isdigit|isdecimal|isnumeric)\(")
    for path in SOURCES:
        relative = path.relative_to(PACKAGE).as_posix()
        if relative not in {"core/digits.py", "kubelet/server/logs.py"}:  # that one asks bytes
            assert not asks.search(path.read_text()), relative


# The verbs that the chain sends calls to, and what the server writes of its own.
STORING = {
    "apiserver/write/create.py", "apiserver/write/update.py", "apiserver/write/delete.py",
    "apiserver/write/node_batch.py",
    "apiserver/write/ensure.py",  # bootstrap objects
    "apiserver/admission/quota/quota_charges.py",  # status.used
    "apiserver/aggregation/checks.py",  # conditions of APIServices
    "apiserver/extension/api_services.py", "apiserver/extension/crd_finalizer.py",
    "apiserver/registry/services/service_claims.py",  # IPAddresses
}  # fmt: skip


def test_only_these_modules_write_to_the_store():
    writes = re.compile(r"registry\s*\.(insert|replace|remove)\(")
    found = {
        path.relative_to(PACKAGE).as_posix() for path in SOURCES if writes.search(path.read_text())
    }
    assert found == STORING


def test_only_these_modules_ask_the_authorizers_about_a_call():
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if "sampan.apiserver.authz.calls.authorize" in modules_imported(path)
    }
    # A PUT or an apply of what is not there is a create as well.
    assert asking == {
        "apiserver/chain.py", "apiserver/write/apply.py", "apiserver/write/put.py",
    }  # fmt: skip


def test_every_module_opens_with_its_job():
    for path in SOURCES:
        if path.name != "__init__.py":
            assert ast.get_docstring(tree_of(path)), path


def test_unit_tests_mirror_the_sources():
    """A unit test is found by its module's path, and none tests a module that is gone."""
    for test in (ROOT / "tests" / "unit").rglob("test_*.py"):
        relative = test.relative_to(ROOT / "tests" / "unit")
        module = relative.with_name(relative.name.removeprefix("test_"))
        if (ROOT / "tests" / module).exists():  # tests/support/
            continue
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
        if path != PACKAGE / "core" / "fast_dataclass.py":
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


def test_gates_are_asked_for_by_name_and_only_those_that_do_both():
    """`here` of data/gates.json is `both` where, and only where, somebody asks for the gate."""
    table = json.loads((PACKAGE / "data" / "gates.json").read_text())["gates"]
    asked = set()
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "features.enabled":
                [name] = node.args
                if path.name not in ("process.py", "gates.py"):  # they show all of them
                    assert isinstance(name, ast.Constant), f"{path}: {ast.unparse(node)}"
                    asked.add(name.value)
    served = json.loads((PACKAGE / "data" / "served.json").read_text())["resources"]
    asked |= {entry["gate"] for entry in served.values() if "gate" in entry}
    both = {name for name, row in table.items() if row["here"] == "both"}
    asked |= GATES & both  # of fields: without their gate they go, whether the rest is here or not
    assert asked == both


def test_changes_without_a_gate_are_asked_for_by_name():
    """data/changes.json has those that code asks for, and no other."""
    table = json.loads((PACKAGE / "data" / "changes.json").read_text())["changes"]
    asked = {
        node.args[0].value
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "features.changed"
    }
    assert asked == set(table)


def test_functions_are_short():
    long = [name for name, node in functions() if node.end_lineno - node.lineno >= MOST_LINES]
    assert long == []


def test_what_travels_together_is_a_value():
    wide = [name for name, node in functions() if parameters(node) > MOST_PARAMETERS]
    assert len(wide) <= 10, wide


def test_functions_branch_few_ways():
    branching = [name for name, node in functions() if branches(node) > MOST_BRANCHES]
    assert len(branching) <= BRANCHING_FUNCTIONS, branching


def test_memos_are_bounded_in_one_place_and_no_cache_is_a_global():
    """Each found one is named in a list that only shrinks: who mends one takes it out."""
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in SOURCES
        if path != PACKAGE / "core" / "bounded.py"
        for search in (hand_written_memos.bounded_by_hand, hand_written_memos.global_caches)
        for name in sorted(set(search(tree_of(path))))
    ]
    assert sorted(found) == sorted(hand_written_memos.LEFT)


def test_a_memo_that_is_bounded_by_hand_is_found():
    text = (
        "KNOWN = {}\n"
        "def f(x):\n"
        "    KNOWN[x] = 1\n"
        "    if len(KNOWN) > 9:\n"
        "        del KNOWN[next(iter(KNOWN))]\n"
    )
    assert [*hand_written_memos.bounded_by_hand(ast.parse(text))] == ["KNOWN"]
    assert [*hand_written_memos.global_caches(ast.parse(text))] == ["KNOWN"]


# Literals that tell of a rule, and the only modules that may say them: whoever needs the rule asks.
HOMES = {
    r"""\(\s*"Succeeded", "Failed"|"Failed", "Succeeded"\s*\)""": {"api/rules/pods.py"},
    r"""\.get\("restartPolicy"\) == "Always\"""": {"api/rules/pods.py"},
    r"""kubernetes\.io/config\.mirror""": {"api/rules/pods.py"},
    r'"µs"': {"core/durations.py"},
}


@pytest.mark.parametrize("literal", HOMES)
def test_a_rule_has_one_home(literal):
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if re.search(literal, path.read_text())
    }
    assert found == HOMES[literal]


# They compare otherwise: without regard to case, with a pattern, or want all of a type.
SEARCHING_CONDITIONS = {
    "api/rules/conditions.py",
    "api/validation/access/certificate_signing_request.py",
    "controllers/jobs/job_policy.py",
    "testing/kit/expectations.py",
}


def searches_conditions(tree: ast.Module) -> bool:
    """A loop over conditions that compares their types, as conditions.find does."""
    loops = (ast.For, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
    for loop in (node for node in ast.walk(tree) if isinstance(node, loops)):
        over = [loop.iter] if isinstance(loop, ast.For) else [each.iter for each in loop.generators]
        if "condition" in " ".join(map(ast.unparse, over)).lower():
            compared = (node for node in ast.walk(loop) if isinstance(node, ast.Compare))
            equal = (ast.unparse(node) for node in compared if isinstance(node.ops[0], ast.Eq))
            if re.search(r"\.get\('type'\)|\['type'\]", " ".join(equal)):
                return True
    return False


def test_conditions_are_found_in_one_place():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if searches_conditions(tree_of(path))
    }
    assert found == SEARCHING_CONDITIONS


MOST_MODULE_LINES = 450
# One concept each, too large for the limit: the list only shrinks.
LARGE_MODULES = {
    "api/cel/language/evaluator.py",
    "api/custom/value_validation.py",
    "apiserver/server.py",
    "client/rest.py",
    "controllers/storage/persistent_volumes.py",
    "core/http/server_connection.py",
    "kubelet/kubelet.py",
    "kubelet/native/containers.py",
    "kubelet/pods/pod_sync.py",
    "kubelet/runtime/cri_runtime.py",
    "store/etcd.py",
}


def test_modules_are_short():
    large = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if len(path.read_text().splitlines()) > MOST_MODULE_LINES
    }
    assert large <= LARGE_MODULES, sorted(large - LARGE_MODULES)
    for name in LARGE_MODULES:
        assert (PACKAGE / name).exists(), name


def test_what_a_checker_is_told_to_overlook_has_a_reason():
    told = re.compile(r"# (?:type: ignore\[[\w, -]+\]|noqa: [A-Z0-9]+(?:, [A-Z0-9]+)*)(.*)$")
    for path in SOURCES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert "type: ignore" not in line or told.search(line), f"{path}:{number}"
            found = told.search(line)
            assert found is None or found[1].startswith("  # "), f"{path}:{number}: why?"


def is_bounded(node: ast.expr) -> bool:
    """A constant, the length of what is there, what is made of such, or at most such."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Call(func=ast.Name(id="min")):
            return any(map(is_bounded, node.args))
        case ast.UnaryOp(operand=operand):
            return is_bounded(operand)
        case ast.BinOp(left=left, right=right):
            return is_bounded(left) and is_bounded(right)
    return False


def unbounded_counts(tree: ast.AST) -> list[int]:
    """Lines with a range, or a list repeated, as long as something may say."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="range" | "repeat")):
                counted = node.args[1:] if node.func.id == "repeat" else node.args
                if not all(map(is_bounded, counted)):
                    found.append(node.lineno)
            case (
                ast.BinOp(op=ast.Mult(), left=ast.List(), right=times)
                | ast.BinOp(op=ast.Mult(), right=ast.List(), left=times)
            ):
                if not is_bounded(times):
                    found.append(node.lineno)
    return found


def test_nothing_is_as_long_as_a_number_of_an_object():
    """spec.replicas of 2 000 000 000 is an ordinary number to a controller and to the scheduler."""
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in SOURCES
        if path.relative_to(PACKAGE).parts[0] in {"controllers", "scheduler"}
        and (lines := unbounded_counts(tree_of(path)))
    }
    assert found.keys() == COUNTED.keys(), found


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("for at in range(spec['replicas']): pass", True),
        ("missing = set(range(first, completions))", True),
        ("pods = [pod] * wanted", True),
        ("for at in range(len(pods) - 1): pass", False),
        ("pods = [pod] * min(wanted, BURST)", False),
    ],
)
def test_a_loop_over_a_number_of_an_object_is_found(text, is_found):
    assert bool(unbounded_counts(ast.parse(text))) == is_found


def names_in(*nodes: ast.AST | None) -> set[str]:
    found = (each for node in nodes if node is not None for each in ast.walk(node))
    return {each.id for each in found if isinstance(each, ast.Name)}


def looks_back(tree: ast.AST) -> list[int]:
    """Lines that go through all before, or all behind, an item of a list for each of its items."""
    found = []
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For):
            continue
        for node in ast.walk(loop):
            match node:
                case ast.Compare(
                    ops=[ast.In() | ast.NotIn()], comparators=[ast.Subscript(slice=part) as where]
                ):
                    pass
                case (
                    ast.For(iter=ast.Subscript(slice=part) as where)
                    | ast.comprehension(iter=ast.Subscript(slice=part) as where)
                ):
                    pass
                case _:
                    continue
            open_ended = isinstance(part, ast.Slice) and None in (part.lower, part.upper)
            if open_ended and node is not loop and names_in(part) & names_in(loop.target):
                found.append(where.lineno)
    return found


def test_no_item_of_an_object_is_compared_with_all_before_it():
    """Lists of an object have tens of thousands of items, and equal ones a pair for each two."""
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in SOURCES
        if path.relative_to(PACKAGE).parts[0] in {"api", "apiserver", "controllers", "scheduler"}
        and (lines := looks_back(tree_of(path)))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("for at, each in enumerate(all):\n    if each in all[:at]: pass", True),
        ("for at, each in enumerate(all):\n    for later in all[at + 1 :]: pass", True),
        ("for at, each in enumerate(all):\n    x = [later for later in all[at:]]", True),
        ("for each in all[1:]: pass", False),
        ("for one in some:\n    for each in one[1:]: pass", False),
    ],
)
def test_a_look_back_for_each_item_is_found(text, is_found):
    assert bool(looks_back(ast.parse(text))) == is_found


def test_patterns_are_compiled_when_they_are_first_used():
    """An import that compiles its regular expressions pays for those that it never uses."""
    found = [
        f"{path}:{node.lineno}"
        for path in SOURCES
        for node in tree_of(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and "re.compile(" in ast.unparse(node)
    ]
    assert found == []


# Imports inside functions, by part: how many at most, and what they buy. One that its module loads
# anyway, whatever is started, belongs to the top of the file.
IMPORTS_INSIDE = {
    "cmd": (321, "a verb loads its own parts; a start loads a node, a store, a driver that it has"),
    "cli": (115, "a verb of the client loads what it asks and prints, and nothing of the others"),
    "apiserver": (86, "plugins, printers, documents, handlers, certificates: when asked for"),
    "kubelet": (19, "containerd, CSI, gRPC probes, static managers, figures, patterns, keys"),
    "testing": (15, "`import sampan.testing` loads 61 modules, a cluster of it 1 300"),
    "api": (23, "CEL, patterns, templates, times and zones, tables of versions, differences"),
    "client": (12, "TLS, YAML and plugins of credentials, where the kubeconfig has them"),
    "scheduler": (11, "CEL, where a claim selects devices by it"),
    "core": (12, "asyncio, dataclasses, hashes, gRPC, YAML: for who does without"),
    "controllers": (6, "CEL, where a policy needs it; numpy; cryptography, where a CSR is there"),
    "store": (2, "etcd's client, where the URL names one"),
    "runtime": (2, "TOML, where a registry has a file of hosts; YAML, where a CDI file is of it"),
}  # fmt: skip


def imports_inside(path: Path) -> int:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {
        id(node)
        for function in ast.walk(tree_of(path))
        if isinstance(function, functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(found)


def test_imports_inside_functions_buy_something():
    counts: dict[str, int] = {}
    for path in SOURCES:
        part = module_name(path).split(".")[1] if module_name(path).count(".") else ""
        counts[part] = counts.get(part, 0) + imports_inside(path)
    found = {part: number for part, number in counts.items() if number}
    allowed = {part: most for part, (most, _) in IMPORTS_INSIDE.items()}
    assert found.keys() <= allowed.keys()
    assert {part: number for part, number in found.items() if number > allowed[part]} == {}
