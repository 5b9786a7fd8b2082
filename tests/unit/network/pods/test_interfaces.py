from sampan.network.pods.interfaces import hardware_address, hardware_text, host_interface_name


def test_the_node_s_end_has_a_name_that_is_known_without_being_told():
    names = {host_interface_name("br", container, "eth0") for container in ("a", "b", "c")}
    assert len(names) == 3
    assert host_interface_name("br", "a", "eth0") in names
    assert host_interface_name("br", "a", "net1") not in names
    assert host_interface_name("other", "a", "eth0") not in names
    assert all(len(name) <= 15 for name in names)


def test_the_hardware_address_is_made_of_the_address():
    """Who remembers an address's last holder is right about its next one."""
    assert hardware_text(hardware_address(["10.244.0.5/24", "fd00::5/64"])) == "0a:58:0a:f4:00:05"
    one, other = hardware_address(["fd00::5/64"]), hardware_address(["fd00::6/64"])
    assert one != other
    assert one[:2] == b"\x0a\x58"
    assert len(one) == 6
