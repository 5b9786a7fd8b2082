from sampan.api.validation.internal_form import internal_form


def test_what_nobody_has_set_is_printed_too():
    assert internal_form("Taint", {"key": "a", "effect": "NoSchedule"}) == {
        "Key": "a",
        "Value": "",
        "Effect": "NoSchedule",
        "TimeAdded": None,
    }


def test_types_within_types_have_their_own_form():
    strategy = {"type": "X", "rollingUpdate": {"partition": 1}}
    assert internal_form("StatefulSetUpdateStrategy", strategy) == {
        "Type": "X",
        "RollingUpdate": {"Partition": 1, "MaxUnavailable": None},
    }
    context = internal_form("SecurityContext", {"seLinuxOptions": {"user": "u"}})
    assert context["SELinuxOptions"] == {"User": "u", "Role": "", "Type": "", "Level": ""}
    assert context["AllowPrivilegeEscalation"] is None


def test_metadata_of_a_template_stands_among_its_fields_and_empty_parts_of_it_are_left_out():
    template = {"metadata": {"labels": {"b": "1", "a": "2"}, "name": ""}, "spec": {}}
    shown = internal_form("core.PodTemplateSpec", template)
    assert list(shown) == ["labels", "Spec"]
    assert list(shown["labels"]) == ["a", "b"]
    assert shown["Spec"]["Containers"] is None


def test_what_a_pod_shares_with_its_host_is_in_its_security_context():
    shown = internal_form("core.PodSpec", {"hostNetwork": True})
    assert shown["SecurityContext"]["HostNetwork"] is True
    assert "HostNetwork" not in shown


def test_types_with_names_of_their_own_in_json_keep_them():
    selector = {"matchExpressions": [{"operator": "Exists", "key": "a"}], "matchLabels": {}}
    assert internal_form("v1.LabelSelector", selector) == {
        "matchExpressions": [{"key": "a", "operator": "Exists"}]
    }
    (term,) = internal_form("v1.LabelSelector", selector)["matchExpressions"]
    assert list(term) == ["key", "operator"]
