"""Where a store cannot live: WAL needs shared memory and POSIX locks that network and user-space file systems do not keep."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from memoryd.errors import PlatformUnsupported, StoreBroken

__all__ = ["file_system_type", "is_remote", "refuse_network", "require_platform"]

REMOTE = frozenset({
    "nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afpfs", "webdav", "ncpfs", "coda", "afs",
    "9p", "v9fs", "virtiofs", "vboxsf", "vmhgfs", "prl_fs",
    "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "orangefs", "pvfs2", "ocfs2", "gfs2",
    "fuse", "macfuse", "osxfuse", "fusefs",
})
ESCAPE = re.compile(r"\\([0-7]{3})")


def require_platform(name: str = os.name) -> None:
    """Raise :class:`~memoryd.errors.PlatformUnsupported` where the store cannot keep its promises."""
    if name != "posix":
        raise PlatformUnsupported("memoryd runs on Linux and macOS; on Windows run it inside WSL")


def refuse_network(directory: Path) -> None:
    """Raise :class:`~memoryd.errors.StoreBroken` where ``directory`` is on a file system on which WAL corrupts."""
    kind = file_system_type(directory)
    if is_remote(kind):
        raise StoreBroken(
            f"{directory} is on {kind}, where SQLite's write-ahead log gets corrupted; set MEMORYD_HOME to a directory on a local disk",
            path=str(directory),
        )


def is_remote(kind: str) -> bool:
    """``fuse.sshfs`` and its kin are remote or unsafe; ``fuseblk`` is a local disk behind FUSE."""
    return kind.split(".", 1)[0].lower() in REMOTE


if sys.platform == "darwin":

    def file_system_type(path: Path) -> str:
        """The name of the file system that holds ``path``, as the kernel calls it; empty where it cannot be told."""
        import ctypes

        buffer = ctypes.create_string_buffer(4096)
        libc = ctypes.CDLL(None, use_errno=True)
        statfs = getattr(libc, "statfs$INODE64", None) or libc.statfs
        return darwin_type(buffer.raw) if statfs(os.fsencode(path), buffer) == 0 else ""

else:

    def file_system_type(path: Path) -> str:
        """The name of the file system that holds ``path``, as the kernel calls it; empty where it cannot be told."""
        try:
            table = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
        except OSError:
            return ""  # a sandbox without /proc: nothing to go by, and most disks are local
        return mount_type(table, os.path.realpath(path))


def darwin_type(statfs: bytes) -> str:
    """``f_fstypename`` of macOS's ``struct statfs`` with 64-bit inodes."""
    return statfs[72:88].split(b"\0", 1)[0].decode("ascii", "replace")


def mount_type(table: str, path: str) -> str:
    """The type of the mount that holds the absolute ``path``, from the text of ``/proc/self/mountinfo``.

    The longest mount point wins; of two at the same point the later line, which hides the earlier.
    """
    best, kind = -1, ""
    for line in table.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[4])
        if len(point) >= best and (path + "/").startswith(point.rstrip("/") + "/"):
            best, kind = len(point), after.split(" ", 1)[0]
    return kind
