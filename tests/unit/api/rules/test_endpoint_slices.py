from sampan.api.rules.endpoint_slices import ready_endpoints, services_of_slice


def test_a_slice_is_its_label_s_service_s():
    meta = {"namespace": "ns", "labels": {"kubernetes.io/service-name": "web"}}
    assert services_of_slice({"metadata": meta}) == ("ns/web",)
    assert services_of_slice({"metadata": {"namespace": "ns"}}) == ()


def test_endpoints_that_do_not_say_are_ready():
    silent, ready, waiting = {}, {"conditions": {"ready": True}}, {"conditions": {"ready": False}}
    unknown = {"conditions": {"ready": None}}
    entries = [silent, ready, waiting, unknown]
    assert list(ready_endpoints({"endpoints": entries})) == [silent, ready, unknown]
    assert list(ready_endpoints({"endpoints": None})) == []
