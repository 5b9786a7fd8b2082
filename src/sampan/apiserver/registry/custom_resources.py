"""Custom objects: their strategy, and items as a version shows them.

Job: the strategy that a version of a definition has; items as a version shows them. Pure.
Invariant: an item's form in a version is made once and kept with it.
"""

import orjson

from sampan.api.calls import Item
from sampan.api.custom.custom_version import CustomVersion, custom_of
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.apiserver.registry.strategy import Strategy, path_getter


def strategy_of(custom: CustomVersion) -> Strategy:
    return Strategy(
        has_generation=True,
        unconditional_update=False,
        fields={item: path_getter(*item.split(".")) for item in custom.selectable},
    )


class NotConverted(Exception):
    """Only the webhook can tell how the version shows an item, and it was not asked."""


def has_form(custom: CustomVersion, item: Item) -> bool:
    """Whether it is known how the version shows it."""
    token = custom.schema_token
    return item.as_is is token or (item.forms is not None and token in item.forms)


def shown_item(resource: Resource, item: Item) -> Item:
    """Raises NotConverted."""
    custom = custom_of(resource)
    assert custom is not None, resource
    if item.as_is is custom.schema_token:
        return item
    found = None if item.forms is None else item.forms.get(custom.schema_token)
    if found is not None:
        return found
    obj = custom.shown(item.obj)
    if obj is None:
        raise NotConverted
    return keep_form(item, custom, obj)


def keep_form(item: Item, custom: CustomVersion, obj: Obj) -> Item:
    if obj is item.obj or obj == item.obj:
        item.as_is = custom.schema_token
        return item
    found = Item(item.key, item.revision, obj, orjson.dumps(obj))
    item.forms = {**(item.forms or {}), custom.schema_token: found}
    return found
