"""Values that are owned in every way: a made-up type and objects of it."""

from typing import Any

from hypothesis import strategies as st

from sampan.api.apply.field_types import STRING, KeyedList, Leaf, Map, Struct


def world() -> Struct:
    """A struct with one field of each way of being owned; one of its fields is always there."""
    inner = Struct(frozenset())
    inner.add("x", STRING)
    inner.add("labels", Map(STRING))
    item = Struct(frozenset())
    item.add("name", STRING)
    item.add("value", STRING)
    item.add("inner", inner)
    root = Struct(frozenset({"fixed"}))
    root.add("scalar", STRING)
    root.add("labels", Map(STRING))
    root.add("fixed", inner)
    root.add("optional", inner)
    root.add("structs", Map(inner))
    root.add("items", KeyedList(item, ("name",)))
    root.add("values", KeyedList(STRING))
    root.add("atoms", Leaf("list", STRING))
    return root


WORLD = world()
SCALARS = st.sampled_from(["1", "2", "3"])
KEYS = st.sampled_from("abc")
LABELS = st.dictionaries(KEYS, SCALARS, max_size=3)


def some(**fields: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields)


INNER = some(x=SCALARS, labels=LABELS)
NAMED = st.lists(KEYS, unique=True, max_size=3).flatmap(
    lambda names: st.tuples(
        *(
            st.fixed_dictionaries(
                {"name": st.just(name)}, optional={"value": SCALARS, "inner": INNER}
            )
            for name in names
        )
    ).map(list)
)
OBJECTS = some(
    scalar=SCALARS,
    labels=LABELS,
    fixed=INNER,
    optional=INNER,
    structs=st.dictionaries(KEYS, INNER, max_size=2),
    items=NAMED,
    values=st.lists(KEYS, unique=True, max_size=3),
    atoms=st.lists(SCALARS, max_size=2),
)
