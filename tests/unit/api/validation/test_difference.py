"""Differences as an original v1.35.8 printed them."""

from sampan.api.validation.difference import difference


def test_a_changed_field_is_shown_among_its_neighbours():
    was, now = {"hostPath": {"path": "/a", "type": ""}}, {"local": {"path": "/a"}}
    assert difference("core.PersistentVolumeSource", was, now).startswith(
        '@@ -1,10 +1,7 @@\n {\n  "GCEPersistentDisk": null,\n  "AWSElasticBlockStore": null,\n'
        '- "HostPath": {\n-  "Path": "/a",\n-  "Type": ""\n- },\n+ "HostPath": null,\n'
    )


def test_equal_objects_give_no_lines():
    assert difference("core.PodSpec", {"nodeName": "a"}, {"nodeName": "a"}) == ""
