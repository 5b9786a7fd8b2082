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
