"""`set env`: variables of containers, listed, set, removed, or taken from config maps and secrets.

Job: words and references become a change of each container's env.
"""

import re

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of
from sampan.cli.create.keys import env_problems
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import changing, selection
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.changing import ALL_AND_SELECTOR, NO_RESOURCES
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session
from sampan.cli.workloads.containers import chosen
from sampan.cli.workloads.environment_values import reference_text, reference_value
from sampan.core.patterns import lazy_pattern

_PAIR = lazy_pattern(r"(?s)^.+=.*$")


def run(session: Session, values: Values) -> None:
    if values["all"] and values["selector"]:
        raise CliError(ALL_AND_SELECTOR)
    resources, words = _split(values.arguments)
    outcome = changing.outcome_of(
        session, values, "env updated", "failed to patch env update to pod template:"
    )
    session.check_context()
    _check(values, outcome, resources)
    env, gone, from_stdin = _parse(session, [*values["env"], *words])
    if values["from"]:
        env += _referred(session, values, from_stdin)
    for entry in env:
        entry["name"] = f"{values['prefix']}{entry['name']}"
    found = changing.infos(
        session, values, resources, stdin_in_use=from_stdin, words_are_local=True
    )
    listing = _Listing(session, values) if values["list"] else None

    def change(info: Info, obj: Obj) -> bool:
        _change(session, values, info, obj, (env, gone), listing)
        return True

    if listing is None:
        changing.change_all(session, values, found, change, outcome)
        return
    for info in found:
        # What is wrong with one of them is not told: it is only looked at.
        try:
            change(info, copy_of(info.obj))
        except CliError:
            continue


def _check(values: Values, outcome: changing.Outcome, resources: list[str]) -> None:
    if values["local"] and outcome.strategy == "server":
        raise CliError(changing.NOT_ON_SERVER)
    if not values["filename"] and not resources:
        raise CliError(NO_RESOURCES)
    if values["list"] and values["output"]:
        raise CliError("--list and --output may not be specified together")
    if values["keys"] and not values["from"]:
        raise CliError("when specifying --keys, a configmap or secret must be provided with --from")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    resources: list[str] = []
    changes: list[str] = []
    for word in words:
        if _PAIR.match(word) or word.endswith("-"):
            changes.append(word)
        elif changes:
            raise CliError(
                f"all resources must be specified before environment changes: {' '.join(words)}"
            )
        else:
            resources.append(word)
    return resources, changes


def _parse(session: Session, words: list[str]) -> tuple[list[Obj], list[str], bool]:
    env: list[Obj] = []
    gone: list[str] = []
    from_stdin = False
    names = set()
    for word in words:
        name, equals, value = word.partition("=")
        if word == "-":
            env += _from_stdin(session)
            from_stdin = True
        elif equals:
            if problems := env_problems(name):
                raise CliError(f'"{name}" is not a valid key name: {";".join(problems)}')
            names.add(name)
            env.append(_entry(name, value))
        elif word.endswith("-"):
            gone.append(word[:-1])
        else:
            raise CliError(f"unknown environment variable: {word}")
    if names & set(gone):
        raise CliError(
            "can not both modify and remove the same environment variable in the same command"
        )
    return env, gone, from_stdin


def _from_stdin(session: Session) -> list[Obj]:
    found = []
    for line in session.io.stdin.read().decode(errors="replace").splitlines():
        name, equals, value = line.partition("#")[0].partition("=")
        if equals:
            found.append(_entry(name, value))
    return found


def _entry(name: str, value: str) -> Obj:
    return {"name": name, **({"value": value} if value else {})}


def _referred(session: Session, values: Values, from_stdin: bool) -> list[Obj]:
    """One variable for each key of --from."""
    builder = Builder(session, continue_on_error=True).in_namespace()
    builder.typed, builder.stdin_in_use = True, from_stdin
    builder.files(values)
    builder.is_local = bool(values["local"])
    if not values["local"]:
        builder.labels(selection.labels_flag(values))
        builder.arguments([values.text("from")], allow_empty_selector=bool(values["all"]))
        builder.latest = True
    entries = []
    for info in builder.do().infos():
        if info.resource.kind not in ("ConfigMap", "Secret"):
            raise CliError("unsupported resource specified in --from")
        field = "configMapKeyRef" if info.resource.kind == "ConfigMap" else "secretKeyRef"
        for key in sorted(info.obj.get("data") or {}):
            if values["keys"] and key not in values["keys"]:
                continue
            reference = {"name": info.name, "key": key}
            entries.append({"name": _in_capitals(session, key), "valueFrom": {field: reference}})
    return entries


def _in_capitals(session: Session, key: str) -> str:
    upper = re.sub(r"[^a-zA-Z0-9_]", "_", key).upper()
    if upper != key:
        session.print_warning(f"key {key} transferred to {upper}")
    return upper


def _change(
    session: Session,
    values: Values,
    info: Info,
    obj: Obj,
    changes: tuple[list[Obj], list[str]],
    listing: "_Listing | None",
) -> None:
    env, gone = changes
    containers = chosen(changing.pod_spec_of(info, obj), values.text("containers"))
    if not containers:
        session.print_warning(
            f"{info.resource.kind}/{info.name} does not have any containers matching "
            f'"{values["containers"]}"'
        )
    for container in containers:
        before = container.get("env") or []
        if not values["overwrite"]:
            _refuse_overwrites(before, env)
        after = _updated(before, env, gone)
        container.pop("env", None)
        if after:
            container["env"] = after
        if listing is not None:
            listing.container(info, obj, container, after)


def _refuse_overwrites(existing: list[Obj], env: list[Obj]) -> None:
    for entry in env:
        own = next((one for one in existing if one["name"] == entry["name"]), None)
        if own is not None and own.get("value", "") != entry.get("value", ""):
            raise CliError(
                f"'{own['name']}' already has a value ({own.get('value', '')}), and --overwrite "
                "is false"
            )


def _updated(existing: list[Obj], env: list[Obj], gone: list[str]) -> list[Obj]:
    """What is set takes the place of the first of its name; others of that name go."""
    out, covered = [], set(gone)
    for entry in existing:
        if entry["name"] in covered:
            continue
        newer = next((one for one in env if one["name"] == entry["name"]), None)
        if newer is not None:
            covered.add(entry["name"])
        out.append(newer or entry)
    for entry in env:
        if entry["name"] not in covered:
            covered.add(entry["name"])
            out.append(entry)
    return out


class _Listing:
    """--list: each container's variables, and with --resolve what they refer to."""

    def __init__(self, session: Session, values: Values) -> None:
        self._session, self._resolves = session, bool(values["resolve"])

    def container(self, info: Info, obj: Obj, container: Obj, env: list[Obj]) -> None:
        session = self._session
        session.print(f"# {info.resource.kind} {info.name}, container {container['name']}")
        failures: dict[str, list[str]] = {}
        known: dict[str, Obj] = {}
        for entry in env:
            source = entry.get("valueFrom")
            if not source:
                session.print(f"{entry['name']}={entry.get('value', '')}")
                continue
            if self._resolves:
                try:
                    value = reference_value(session, known, source, obj, container)
                    session.print(f"{entry['name']}={value}")
                    continue
                except (ApiError, CliError) as error:
                    why = error.message if isinstance(error, ApiError) else str(error)
                    failures.setdefault(why, []).append(entry["name"])
            session.print(f"# {entry['name']} from {reference_text(source)}")
        for text in sorted(
            f"error retrieving reference for {', '.join(sorted(names))}: {why}"
            for why, names in failures.items()
        ):
            session.complain(text)
        if failures:
            raise CliError("failed to retrieve valueFrom references")
