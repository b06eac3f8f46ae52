"""What the agent of a machine finds out about it, without being on another one."""

from pathlib import Path

import pytest

from infra.machine_agent import filesystem_of

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
10.0.0.1:/srv /srv nfs4 rw 0 0
/dev/sdb1 /srv/own xfs rw 0 0
host:/a\\040b /mnt/a\\040b fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/usr/bin", "ext4"),
        ("/srv/x/y", "nfs4"),
        ("/srv/own/x", "xfs"),
        ("/srvx", "ext4"),
        ("/mnt/a b/c", "fuse.sshfs"),
    ],
)
def test_the_innermost_mount_tells_what_a_path_is_on(path: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _path, encoding: MOUNTS)
    assert filesystem_of(Path(path)) == kind
