from __future__ import annotations

import os
from pathlib import Path

import pytest

from memoryd.errors import StoreBroken
from memoryd.store import ProfileStore, Schema, prepare
from memoryd.store._filesystem import darwin_type, file_system_type, is_remote, mount_type, refuse_network

TABLE = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /home rw,relatime shared:2 master:1 - nfs4 server:/home rw,vers=4.2
31 27 0:41 / /mnt/with\040space\134slash rw - cifs //nas/share rw
32 27 0:42 / /srv rw - virtiofs srv rw
33 32 254:1 / /srv/local rw - xfs /dev/vdb rw
34 27 0:43 / /media/ntfs rw - fuseblk /dev/sdb1 rw
35 27 0:44 / /ssh rw - fuse.sshfs host:/ rw
36 27 0:45 / /twice rw - nfs a:/ rw
37 27 0:46 / /twice rw - tmpfs tmpfs rw
malformed line
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "ext4"),
        ("/homework/x", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/.local/share", "nfs4"),
        ("/mnt/with space\\slash/x", "cifs"),
        ("/srv/x", "virtiofs"),
        ("/srv/local/x", "xfs"),
        ("/srv/localhost", "virtiofs"),
        ("/media/ntfs/x", "fuseblk"),
        ("/ssh/x", "fuse.sshfs"),
        ("/twice/x", "tmpfs"),
    ],
)
def test_the_mount_that_holds_a_path_is_found(path: str, expected: str) -> None:
    assert mount_type(TABLE, path) == expected


def test_without_a_table_nothing_is_claimed() -> None:
    assert mount_type("", "/x") == ""
    assert not is_remote("")


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse", "fuse.sshfs", "fuse.s3fs", "ceph", "fuse.glusterfs", "lustre"],
)
def test_remote_file_systems_are_known(kind: str) -> None:
    assert is_remote(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "hfs", "fuseblk", "f2fs", "bcachefs"])
def test_local_file_systems_are_allowed(kind: str) -> None:
    assert not is_remote(kind)


def test_the_type_is_read_from_the_structure_of_macos() -> None:
    head = bytes(64) + (0x1000).to_bytes(4, "little") + bytes(4)
    assert darwin_type(head + b"apfs".ljust(16, b"\0") + bytes(2048)) == "apfs"
    assert darwin_type(head + b"smbfs".ljust(16, b"\0") + bytes(2048)) == "smbfs"


def test_this_file_system_is_told_and_allowed(tmp_path: Path) -> None:
    assert file_system_type(tmp_path)
    refuse_network(tmp_path)


def test_a_store_on_a_network_file_system_is_refused_before_a_byte(
    profile: ProfileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.read_text
    table = f"1 0 0:1 / / rw - ext4 d rw\n2 1 0:2 / {os.path.realpath(profile.directory)} rw - nfs4 server:/home rw\n"
    monkeypatch.setattr(
        Path, "read_text", lambda self, *a, **k: table if str(self) == "/proc/self/mountinfo" else real(self, *a, **k)
    )
    with pytest.raises(StoreBroken, match="is on nfs4.*set MEMORYD_HOME to a directory on a local disk"):
        prepare(profile.directory / "notes.db", Schema("notes", ("CREATE TABLE note (id)",)), profile)
    assert not (profile.directory / "notes.db").exists()
