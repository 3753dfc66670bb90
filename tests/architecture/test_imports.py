"""One pays for what one uses, and enters a package by its door."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import memoryd

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "memoryd").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")])
HEAVY = ("trio", "apsw", "structlog", "asyncio", "msgspec", "click", "rich", "honcho", "sqlite3", "logging", "attr")


def loaded_by(statement: str) -> set[str]:
    """The heavy modules that a fresh interpreter has after ``statement``."""
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(HEAVY) & set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import memoryd", set()),
        ("import memoryd.errors", set()),
        ("import memoryd.core", {"attr", "msgspec"}),
        ("import memoryd.settings", {"attr", "msgspec"}),
        ("import memoryd.cli", {"attr", "click"}),
        ("import memoryd; memoryd.scope", {"attr", "msgspec"}),
        ("import memoryd.client.blocking", set()),
        ("import memoryd, memoryd_local; memoryd.open_runtime", set()),
        ("import memoryd; memoryd.Runtime", {"attr", "msgspec", "trio", "apsw", "logging"}),
    ],
)
def test_an_import_loads_only_what_it_needs(statement: str, allowed: set[str]) -> None:
    # some interpreters load logging or asyncio by themselves (a .pth file, a debugger): what they have at rest does not count
    assert loaded_by(statement) - loaded_by("pass") <= allowed


def test_an_open_runtime_loads_what_it_uses_and_no_more(tmp_path: Path) -> None:
    program = f"""
import sys, trio, memoryd
async def main():
    async with memoryd.open_runtime({str(tmp_path)!r}):
        print(*sys.modules)
trio.run(main)
"""
    unused = ("asyncio", "structlog", "click", "rich", "honcho", "sqlite3", "tomllib", "ctypes", "memoryd.aio", "memoryd.blocking",
              "memoryd.cli", "memoryd.testing", "memoryd.store.faulty", "memoryd_null")  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    )
    loaded = set(done.stdout.split())
    assert {"memoryd.runtime", "memoryd_local._backend"} <= loaded
    at_rest = subprocess.run([sys.executable, "-c", "import sys, trio; print(*sys.modules)"], capture_output=True, text=True, check=True)
    assert set(unused) & loaded <= set(at_rest.stdout.split())


def test_importing_changes_nothing_in_the_host() -> None:
    program = """
import atexit, logging, signal, sys
before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)], logging.root.handlers[:], atexit._ncallbacks()
import memoryd, memoryd.core, memoryd.settings, memoryd.runtime, memoryd.blocking, memoryd_local
memoryd.runtime.OpenRuntime, memoryd_local.LocalBackend
ours = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)], logging.root.handlers[:]
print(before[:2] == ours)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_is_entered_by_its_door(path: Path) -> None:
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts[:-1]).removeprefix("adapters.")
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        assert not (isinstance(node, ast.ImportFrom) and node.level), "imports are absolute"
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("memoryd"):
            package, _, module = node.module.rpartition(".")
            assert not module.startswith("_") or package == own, f"{node.module} is private to {package}"


def packages() -> list[ModuleType]:
    names = [f"memoryd.{found.name}" for found in pkgutil.iter_modules(memoryd.__path__) if found.ispkg]
    return [importlib.import_module(name) for name in names]


def test_every_public_name_has_one_door() -> None:
    doors: dict[int, str] = {}
    for package in packages():
        for name in getattr(package, "__all__", list(vars(package))):  # __all__ where names load when first used
            value = getattr(package, name)
            defined = getattr(value, "__module__", None)
            if name.startswith("_") or isinstance(value, ModuleType) or not isinstance(defined, str):
                continue
            assert defined == package.__name__ or defined.startswith(package.__name__ + "._") or not defined.startswith("memoryd"), (
                f"{package.__name__}.{name} comes from {defined}, which has a door of its own"
            )
            assert doors.setdefault(id(value), package.__name__) == package.__name__, f"{name} has two doors"


def test_the_root_names_what_it_says() -> None:
    assert len(set(memoryd.__all__)) == len(memoryd.__all__)
    for name in memoryd.__all__:
        assert getattr(memoryd, name) is not None
    assert set(memoryd.__all__) <= set(dir(memoryd))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        memoryd.nothing  # noqa: B018
