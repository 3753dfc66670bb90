"""Where backends are found, which one a name means, and what finding them does not do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.core import BackendContext
from memoryd.errors import BackendNotFound, BackendPermanent
from memoryd.runtime import discover_backends, find_backend
from memoryd.testing import FakeRemote, registered

PLUGIN = "from memoryd.testing import FakeRemote\n\n\ndef create(context):\n    return FakeRemote({said!r})\n"
Plant = Callable[..., Path]


@pytest.fixture
def plant(private_home: Path) -> Plant:
    """``plant("x.py", text)`` puts a file into the user's folder of plugins, or into ``folder``."""

    def put(name: str, text: str, folder: Path | None = None) -> Path:
        path = (folder or private_home / "plugins") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return put


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the working directory's plugins, switched on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORYD_ENABLE_PROJECT_PLUGINS", "1")
    return tmp_path / ".memoryd" / "plugins"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``package("x")`` installs a distribution whose entry point in ``memoryd.backends`` is called x."""

    def install(name: str) -> None:
        site = tmp_path / "site"
        site.mkdir(exist_ok=True)
        (site / f"stranger_{name}.py").write_text(PLUGIN.format(said=f"package {name}"), "utf-8")
        info = site / f"stranger_{name}-2.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: stranger-{name}\nVersion: 2.5\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[memoryd.backends]\n{name} = stranger_{name}:create\n", "utf-8")
        monkeypatch.syspath_prepend(str(site))

    return install


def context(name: str, home: Path) -> BackendContext:
    return BackendContext(name, home, "p", "i", bytes(32))


def said(name: str, home: Path) -> str:
    """What the backend that ``name`` means calls itself."""
    return find_backend(name).load()(context(name, home)).info.name


def test_the_bundled_ones_are_there() -> None:
    found = discover_backends().found
    assert {"null", "local"} <= found.keys()
    assert {one.origin for one in found.values()} == {"bundled"}


def test_the_earlier_place_wins(private_home: Path, plant: Plant, project: Path, package: Callable[[str], None]) -> None:
    for name in ("local", "a", "b", "c"):
        package(name)
    for name in ("local", "a", "b"):
        plant(f"{name}.py", PLUGIN.format(said=f"project {name}"), project)
    for name in ("local", "a"):
        plant(f"{name}.py", PLUGIN.format(said=f"user {name}"))
    discovery = discover_backends()
    assert {name: discovery.found[name].origin for name in ("local", "a", "b", "c")} == {
        "local": "bundled", "a": "user", "b": "project", "c": "package",
    }  # fmt: skip
    hidden = [(one.origin, one.name) for one in discovery.shadowed]
    assert sorted(hidden) == [
        ("package", "a"), ("package", "b"), ("package", "local"), ("project", "a"), ("project", "local"), ("user", "local"),
    ]  # fmt: skip
    assert [said(name, private_home) for name in ("a", "b", "c")] == ["user a", "project b", "package c"]
    assert "stranger-c 2.5" in discovery.found["c"].place


def test_a_program_comes_first(private_home: Path) -> None:
    with registered("local", lambda context: FakeRemote("mine")):
        assert said("local", private_home) == "mine"
        assert discover_backends().found["local"].origin == "program"


@pytest.mark.parametrize("switch", [None, "", "0", "no"])
def test_a_project_is_not_looked_into_by_itself(plant: Plant, project: Path, monkeypatch: pytest.MonkeyPatch, switch: str | None) -> None:
    plant("a.py", PLUGIN.format(said="a"), project)
    assert "a" in discover_backends().found
    if switch is None:
        monkeypatch.delenv("MEMORYD_ENABLE_PROJECT_PLUGINS")
    else:
        monkeypatch.setenv("MEMORYD_ENABLE_PROJECT_PLUGINS", switch)
    assert "a" not in discover_backends().found


def test_finding_imports_nothing(private_home: Path, plant: Plant, package: Callable[[str], None], tmp_path: Path) -> None:
    plant("loud.py", "raise SystemExit('imported')")
    plant("loud2/__init__.py", "raise SystemExit('imported')")
    package("quiet")
    program = """
import sys
from memoryd.runtime import discover_backends
before = set(sys.modules)
names = discover_backends().found.keys()
print(*names)
print(*set(sys.modules) - before)
"""
    environment = {"PYTHONPATH": str(tmp_path / "site"), "MEMORYD_HOME": str(private_home), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    names, modules = (set(line.split()) for line in done.stdout.splitlines())
    assert {"null", "local", "loud", "loud2", "quiet"} <= names
    ours = {name for name in modules if name.startswith(("memoryd_", "stranger", "loud", "honcho", "memoryd.runtime._folder"))}
    assert ours == set()


def test_a_package_in_the_folder_has_parts(private_home: Path, plant: Plant) -> None:
    plant("my-store/__init__.py", "from . import part\nfrom .part import create\n")
    plant("my-store/part.py", PLUGIN.format(said="in parts"))
    assert said("my-store", private_home) == "in parts"
    assert find_backend("my-store").load() is find_backend("my-store").load(), "it is imported once"


def test_two_homes_may_have_plugins_of_one_name(tmp_path: Path, plant: Plant) -> None:
    for home in ("one", "two"):
        plant("same.py", PLUGIN.format(said=home), tmp_path / home / "plugins")
    found = [find_backend("same", tmp_path / home).load()(context("same", tmp_path)).info.name for home in ("one", "two")]
    assert found == ["one", "two"]


BROKEN = {
    "syntax.py": ("def create(:", "SyntaxError"),
    "raises.py": ("raise OSError('no')", "OSError: no"),
    "missing.py": ("import nowhere_to_be_found", "ModuleNotFoundError"),
    "empty.py": ("", "has no function create"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_says_why_and_harms_no_other(private_home: Path, plant: Plant, name: str) -> None:
    text, reason = BROKEN[name]
    plant(name, text)
    plant("good.py", PLUGIN.format(said="good"))
    found = find_backend(name.removesuffix(".py"))
    for _ in range(2):  # a failed import leaves nothing behind that would look like a module
        with pytest.raises(BackendPermanent, match=reason):
            found.load()
    assert said("good", private_home) == "good"


def test_what_is_no_plugin_is_reported(private_home: Path, plant: Plant) -> None:
    plant("no-code/readme.txt", "")
    plant("Capital.py", "")
    plant("auto.py", "")
    plant("notes.txt", "")
    plant("_private.py", "")
    plant(".hidden.py", "")
    broken = {one.name: one.reason for one in discover_backends().broken}
    assert broken.keys() == {"no-code", "Capital", "auto"}
    assert "__init__.py" in broken["no-code"]
    with pytest.raises(BackendNotFound, match="no-code.* has no __init__.py"):
        find_backend("no-code")


def test_a_file_in_the_folder_s_place_is_no_folder(private_home: Path) -> None:
    private_home.mkdir(parents=True)
    (private_home / "plugins").touch()
    assert "local" in discover_backends().found
