import gc

import orjson

from sampan.apiserver.storage.initial_load import InitialLoad
from sampan.apiserver.storage.packing import Patterns
from sampan.apiserver.storage.sharing import SharedValues
from sampan.apiserver.storage.stored_form import canonical, item_from, stored_bytes
from sampan.apiserver.storage.template_builder import _Memory


def pod(number):
    metadata = {"name": f"p{number}", "labels": {"app": "web"}, "uid": f"u-{number}"}
    spec = {"nodeName": f"node-{number % 3}", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def read(objects):
    reading, items = InitialLoad(SharedValues(), Patterns()), []
    for number, obj in enumerate(objects):
        neighbour = items[-1] if items else None
        value = stored_bytes(canonical(obj))
        items.append(reading.item(f"k{number}", value, number + 7, neighbour))
    return items


def test_every_item_is_as_if_it_had_been_parsed_by_itself():
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R"}
    lone = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
    objects = [*map(pod, range(60)), event, lone, pod(61)]
    for number, (obj, item) in enumerate(zip(objects, read(objects), strict=True)):
        value = stored_bytes(canonical(obj))
        alone = item_from(f"k{number}", value, number + 7, None)
        assert type(item) is type(alone)
        assert (item.key, item.revision, item.obj) == (alone.key, alone.revision, alone.obj)
        assert orjson.loads(item.data) == alone.obj
        assert item.obj["metadata"]["resourceVersion"] == str(number + 7)


def test_nothing_of_a_read_is_left_to_the_garbage_collector():
    """[E2] with many pods nobody looks for garbage for a long time"""
    gc.collect()
    gc.disable()
    try:
        reading = InitialLoad(SharedValues(), Patterns())
        for number in range(60):
            reading.item(f"k{number}", stored_bytes(canonical(pod(number))), 7, None)
        before = sum(type(each) is _Memory for each in gc.get_objects())
        reading.end()
        after = sum(type(each) is _Memory for each in gc.get_objects())
    finally:
        gc.enable()
    assert before > 0
    assert after == 0


def test_pods_of_a_template_share_what_is_the_templates_or_their_nodes():
    """[E2] what a pod costs in memory is what is its own"""
    *_, one, _, _, two = read(map(pod, range(60)))
    assert one.obj["spec"] is two.obj["spec"]
    assert one.obj["metadata"]["labels"] is two.obj["metadata"]["labels"]
