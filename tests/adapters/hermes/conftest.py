"""Homes for real hosts.  ``make test-hosts`` says in ``MEMORYD_HOSTS`` where the environments with the hosts are."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.adapters.hermes.hosts.stub_model import stub_model
from tests.adapters.hermes.hosts.world import World

ROOT = Path(__file__).parents[3]
HOSTS = os.environ.get("MEMORYD_HOSTS", "")  # read here: tests do not see the user's variables
MakeWorld = Callable[..., World]


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The interpreter of an environment that has a host's packages and, unpacked, the wheel: the host's own stays as it is."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)

    @cache
    def make(host: str) -> Path:
        theirs = Path(HOSTS) / host
        if not HOSTS or not (theirs / "ready").exists():
            pytest.skip("there is no host: make test-hosts")
        folder = tmp_path_factory.mktemp("environments") / host
        subprocess.run([theirs / "bin/python", "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        (there,) = theirs.glob("lib/python*/site-packages")
        (packages / "both.pth").write_text(f"{site}\n{there}\n")
        command = (theirs / "bin/hermes").read_text().split("\n", 1)[1]
        (folder / "bin/hermes").write_text(f"#!{folder}/bin/python\n{command}")
        (folder / "bin/hermes").chmod(0o755)
        return folder / "bin/python"

    return make


@pytest.fixture
def make_world(environment: Callable[[str], Path], tmp_path: Path) -> Iterator[MakeWorld]:
    """``make_world("host22", compression="...")``: a configured home for one of the hosts."""
    with ExitStack() as models:

        def make(host: str, *, compression: str = "", context: int = 200_000) -> World:
            root = tmp_path / host
            root.mkdir()
            world = World(root, environment(host), models.enter_context(stub_model(context)))
            world.configure(compression)
            return world

        yield make
