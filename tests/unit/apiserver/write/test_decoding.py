from sampan.api.calls import Call
from sampan.api.custom.custom_version import CustomKind
from sampan.api.resources import CONFIG_MAPS
from sampan.api.schema.published import Schema
from sampan.apiserver.write.decoding import decode_custom


def widget():
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {"type": "object", "properties": {"spec": texts}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return CustomKind({"metadata": {"name": "widgets.example.com"}, "spec": spec}, Schema.load())


def test_what_somebody_in_this_process_gave_is_copied_however_large():
    custom = widget().versions["v1"]
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
            "spec": {"x": "y"}}  # fmt: skip

    def decoded(agent):
        call = Call("create", CONFIG_MAPS, body=body, size=100_000, agent=agent)
        return decode_custom(call, custom, body, [])

    assert decoded("")["spec"] is not body["spec"]
    assert decoded("kubectl/v1.35.0")["spec"] is body["spec"]
