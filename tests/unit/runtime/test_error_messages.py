"""crun's words as they were seen, and runc's for the same mistakes."""

import pytest

from sampan.runtime.error_messages import creation_failure, process_message


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "executable file `/no/such/file` not found in $PATH: No such file or directory",
            'exec: "/no/such/file": stat /no/such/file: no such file or directory',
        ),
        (
            "executable file `nosuch` not found in $PATH: No such file or directory",
            'exec: "nosuch": executable file not found in $PATH',
        ),
        ("open executable: Permission denied", 'exec: "tool": permission denied'),
        (
            "chdir to `/etc/passwd`: Not a directory",
            'chdir to cwd ("/etc/passwd") set in config.json failed: not a directory',
        ),
        ("mount `proc` to `proc`: Operation not permitted", ""),
    ],
)
def test_a_mistake_has_the_same_words_with_both_runtimes(said, told):
    assert process_message(said, "tool") == told


def test_a_container_s_start_fails_in_the_form_that_containerd_has():
    said = "executable file `nosuch` not found in $PATH: No such file or directory"
    assert creation_failure("crun", said, "nosuch") == (
        "OCI runtime create failed: crun create failed: unable to start container process: "
        'exec: "nosuch": executable file not found in $PATH'
    )
    odd = "mount `proc` to `proc`: Operation not permitted"
    assert creation_failure("crun", odd, "x").endswith(f"crun create failed: {odd}")
