"""`get` for people: one table after the other, each under its header.

Job: tables as the server made them, or made here where it knows none.
Invariant: kinds stand before names only where objects of several kinds are shown.
"""

from sampan.api.objects import Obj, seconds_of
from sampan.cli.errors import CliError, Plain, Several
from sampan.cli.flags import Values
from sampan.cli.objects import manifests
from sampan.cli.objects.builder import Result
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info
from sampan.cli.printers import table
from sampan.cli.session import Session
from sampan.cli.verbs.inspect.get_formats import collected, printer_of

Part = tuple[ApiResource, Obj]


def style_of(values: Values) -> table.TableStyle:
    return table.TableStyle(
        wide=values["output"] == "wide",
        headers=not values["no-headers"],
        namespaces=bool(values["all-namespaces"]),
        labels=bool(values["show-labels"]),
        label_columns=tuple(values["label-columns"]),
    )


def print_tables(session: Session, values: Values, result: Result) -> None:
    infos, failures = collected(values, result)
    if manifests.has_files(values):  # kubectl has them in a list of lists, and says no more
        failures = [Plain(str(one)) if type(one) is CliError else one for one in failures]
    printer_of(values)  # nothing is printed in a format that there is not
    kinds = {(info.resource.api_version, info.resource.kind) for info in infos}
    with_kind = bool(values["show-kind"]) or len(kinds) > 1
    parts = [(info.resource, as_table(session, info)) for info in infos]
    if values["sort-by"]:
        from sampan.cli.objects.sorting import sorted_tables

        parts = sorted_tables(session, parts, values.text("sort-by"))
    texts = _texts(parts, style_of(values), with_kind=with_kind)
    session.write(("\n" if not values["no-headers"] else "").join(texts))
    if not any(texts) and not failures and not values["ignore-not-found"]:
        _say_nothing_found(session, values, infos)
    if failures:
        raise Several(failures)


def _texts(parts: list[Part], style: table.TableStyle, *, with_kind: bool) -> list[str]:
    """Each table that has rows; a namespace column only where its objects have namespaces."""
    texts = []
    for resource, item in _merged(parts):
        if item.get("rows"):
            kind = resource.qualified_singular if with_kind else ""
            texts.append(table.table_text(item, style.of(resource.namespaced), kind))
    return texts


def _say_nothing_found(session: Session, values: Values, infos: list[Info]) -> None:
    if values["all-namespaces"] or not all(info.resource.namespaced for info in infos):
        session.complain("No resources found")
    else:
        session.complain(f"No resources found in {session.namespace} namespace.")


def as_table(session: Session, info: Info) -> Obj:
    """What the server gave, or names and ages where it knows no tables."""
    if info.obj.get("kind") == "Table":
        return info.obj
    from sampan.api.rules.durations import human_duration

    created = (info.obj.get("metadata") or {}).get("creationTimestamp")
    age = human_duration(session.clock.now() - seconds_of(created)) if created else "<unknown>"
    return {
        "kind": "Table",
        "metadata": info.obj.get("metadata") or {},
        "columnDefinitions": [{"name": "Name"}, {"name": "Age"}],
        "rows": [{"cells": [info.name, age], "object": info.obj}],
    }


def _merged(parts: list[Part]) -> list[Part]:
    """Neighbouring tables of one resource under one header."""
    merged: list[Part] = []
    for resource, item in parts:
        if merged and merged[-1][0] == resource and _columns(merged[-1][1]) == _columns(item):
            before = merged[-1][1]
            rows = [*(before.get("rows") or []), *(item.get("rows") or [])]
            merged[-1] = (resource, {**before, "rows": rows})
        else:
            merged.append((resource, item))
    return merged


def _columns(item: Obj) -> list[str]:
    return [column["name"] for column in item.get("columnDefinitions") or []]
