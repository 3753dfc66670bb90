"""Private from the first byte: no instant at which another user could open a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, stat, sys
from pathlib import Path
import apsw
from memoryd.store import Options, Schema, connect, open_profile, prepare, write_private
from memoryd.testing import FaultyVFS
os.umask(int(sys.argv[2], 8))
home = Path(sys.argv[1])
seen = {}

def look(*_):
    for path in [home, *home.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        expected = 0o700 if path.is_dir() else 0o600
        assert mode == expected, f"{path}: {mode:o}"
        seen[path.name] = mode

class Watched(FaultyVFS):
    def due(self, operation, file):
        look()
        return super().due(operation, file)

sys.addaudithook(lambda event, args: look() if event in ("os.rename", "os.mkdir") and home.exists() else None)
disk = Watched("watched")
profile = open_profile(home, "default")
path = profile.directory / "notes.db"
first = Schema("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB)",))
prepare(path, first, profile, vfs="watched")
connection = connect(path, Options(synchronous="FULL"), vfs="watched")
connection.insert("INSERT INTO note (text) VALUES (?)", (b"x" * 20000,))
look()
connection.run("VACUUM")
connection.checkpoint("TRUNCATE")
write_private(profile.directory / "spill", b"x")
second = Schema("notes", (*first.migrations, "CREATE TABLE more (id INTEGER PRIMARY KEY)"))
prepare(path, second, profile, vfs="watched")
look()
print(*sorted(seen))
"""


@pytest.mark.parametrize("umask", ["000", "022", "077"])
def test_every_file_is_private_at_every_step(tmp_path: Path, umask: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "home"), umask], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = done.stdout.split()
    for name in ("notes.db", "notes.db-wal", "notes.db-shm", "notes.db-journal", "profile.key", "profile.json", "spill"):
        assert name in seen
    assert "notes.db.v1.backup.draft" in seen
    assert "notes.db.v1.backup" in seen


def test_a_mode_that_the_operator_chose_is_kept(tmp_path: Path) -> None:
    from memoryd.store import open_profile

    home = tmp_path / "home"
    directory = open_profile(home, "default").directory
    os.chmod(directory, 0o750)
    assert open_profile(home, "default").directory.stat().st_mode & 0o777 == 0o750
