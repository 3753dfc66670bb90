"""Settings: nothing by default, one line for what is wrong, and no network before a backend is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.core import BackendContext
from memoryd.errors import BackendPermanent, ConfigError
from memoryd.testing.honcho import HonchoServer
from memoryd_honcho import create
from memoryd_honcho._settings import read_settings
from tests.adapters.honcho.conftest import context

URL = "https://honcho.example.com"


def test_the_table_wins_over_variables_and_names_have_aliases() -> None:
    environ = {"HONCHO_BASE_URL": URL + "/", "HONCHO_APP_ID": "team", "HONCHO_API_KEY": " hch-1 "}
    found = read_settings({}, environ)
    assert (found.url, found.workspace, found.api_key) == (URL, "team", "hch-1")
    environ |= {"HONCHO_URL": "http://10.0.0.1:8000", "HONCHO_WORKSPACE_ID": "other"}
    assert (read_settings({}, environ).url, read_settings({}, environ).workspace) == ("http://10.0.0.1:8000", "other")
    found = read_settings({"url": "http://[::1]:8000/base", "workspace": "mine", "api_key_env": "MY_KEY"}, environ | {"MY_KEY": "k"})
    assert (found.url, found.workspace, found.api_key) == ("http://[::1]:8000/base", "mine", "k")


def test_a_key_is_read_from_a_file_and_never_shown(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("hch-secret\n")
    found = read_settings({"api_key_file": str(path)}, {"HONCHO_API_KEY": "another"})
    assert found.api_key == "hch-secret"
    assert "hch-secret" not in repr(found)


@pytest.mark.parametrize(
    ("table", "environ", "said"),
    [
        ({"url": "honcho.example.com"}, {}, "backends.honcho.url: expected an address that begins with http"),
        ({}, {"HONCHO_URL": "honcho.example.com:80"}, "HONCHO_URL: expected an address that begins with http"),
        ({}, {"HONCHO_BASE_URL": URL + "/v3/"}, "HONCHO_BASE_URL: expected the address without v3"),
        ({"url": URL + "?a=b"}, {}, "backends.honcho.url: expected an address without ? and #"),
        ({"url": "http://me:hunter2@x"}, {}, "backends.honcho.url: a secret does not belong into the address"),
        ({"url": "http://x:notaport"}, {}, "backends.honcho.url: expected an address such as"),
        ({"url": 1}, {}, "backends.honcho.url: expected a text"),
        ({"workspace": "a b"}, {}, "backends.honcho.workspace: expected 1 to 512 letters"),
        ({}, {"HONCHO_APP_ID": "a/b"}, "HONCHO_APP_ID: expected 1 to 512 letters"),
        ({"timeout": 0}, {}, "backends.honcho.timeout: expected seconds"),
        ({"timeout": True}, {}, "backends.honcho.timeout: expected seconds"),
        ({"read_timeout": "5"}, {}, "backends.honcho.read_timeout: expected seconds"),
        ({"settle": float("nan")}, {}, "backends.honcho.settle: expected seconds"),
        ({"send_tools": "yes"}, {}, "backends.honcho.send_tools: expected true or false"),
        ({"peers": ["ann"]}, {}, "backends.honcho.peers: expected a table"),
        ({"peers": {"ann": "x", "bob": "x"}}, {}, "backends.honcho.peers: each user needs a peer of its own"),
        ({"peers": {"ann": "memoryd-assistant"}}, {}, "backends.honcho.peers: each user needs a peer of its own"),
        ({"peers": {"ann": "a b"}}, {}, "backends.honcho.peers.ann: expected 1 to 512 letters"),
        ({"workspce": "x"}, {}, "backends.honcho.workspce: unknown key; did you mean workspace?"),
        ({"api_key_env": "NO_SUCH"}, {}, "backends.honcho.api_key_env: the variable NO_SUCH is not set"),
        ({"api_key_env": "A", "api_key_file": "b"}, {}, "backends.honcho: give api_key_env or api_key_file, not both"),
        ({"api_key_file": "/no/such/file"}, {}, "backends.honcho.api_key_file: /no/such/file: No such file"),
        ({}, {"HONCHO_API_KEY": "two\nlines"}, "HONCHO_API_KEY: a key is one line of ASCII text"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(table: dict[str, Any], environ: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_settings(table, environ)
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_without_an_address_it_is_not_available_and_says_what_to_set() -> None:
    backend = create(BackendContext("honcho", Path("/nowhere"), "p", "i", b"k" * 32, {}, redactor=lambda: str))
    assert not backend.is_available()
    assert "HONCHO_URL" in backend.is_available().reason


def test_without_a_redactor_nothing_is_sent() -> None:
    backend = create(BackendContext("honcho", Path("/nowhere"), "p", "i", b"k" * 32, {"url": URL}))
    assert "redactor" in backend.is_available().reason


async def test_a_missing_detector_keeps_it_closed() -> None:
    def missing() -> Any:
        raise ImportError("No module named 'kingfisher_sdk'")

    backend = create(BackendContext("honcho", Path("/nowhere"), "p", "i", b"k" * 32, {"url": URL}, redactor=missing))
    with pytest.raises(BackendPermanent, match="kingfisher_sdk"):
        await backend.open()


def test_a_choice_imports_neither_sdk_nor_detector() -> None:
    program = """
import sys
from pathlib import Path
from memoryd.core import BackendContext
from memoryd.redact import load_redactor
from memoryd_honcho import create
backend = create(BackendContext("honcho", Path("/nowhere"), "p", "i", b"k" * 32, {"url": "https://h.example"}, redactor=load_redactor))
assert backend.is_available()
print(backend.info.is_cloud, [name for name in ("honcho", "httpx", "pydantic", "kingfisher_sdk", "asyncio") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1)[0] == "True"
    assert not {"honcho", "httpx", "pydantic", "kingfisher_sdk"} & set(done.stdout.replace("'", " ").replace(",", " ").split())


async def test_a_key_alone_sends_nothing(private_home: Path, honcho: HonchoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HONCHO_API_KEY", "hch-1")
    monkeypatch.setenv("HONCHO_URL", honcho.url)
    async with memoryd.open_runtime(private_home) as runtime:
        with memoryd.scope(user="ann", session="s"):
            runtime.sync_turn("hello", "world")
            await runtime.drain()
            await runtime.recall("hello")
    assert honcho.received == []


async def test_nothing_is_half_configured(private_home: Path) -> None:
    with pytest.raises(ConfigError, match=r"backends.honcho.url: expected the address without v3"):
        async with memoryd.open_runtime(private_home, config={"backend": "honcho", "backends": {"honcho": {"url": URL + "/v3"}}}):
            pass


def test_info_says_where_memory_goes() -> None:
    info = create(context(URL)).info
    assert (info.name, info.label, info.is_cloud, info.data_location, info.requires_api_key) == ("honcho", "honcho (cloud)", True, URL, True)
