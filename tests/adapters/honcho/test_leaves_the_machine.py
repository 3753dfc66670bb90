"""What leaves the machine: no secret, whatever carries it; the log keeps every word, and the message is found by its other words."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.core import Query
from memoryd.testing.honcho import HonchoServer
from memoryd_honcho import HonchoBackend
from tests.adapters.honcho.conftest import Log
from tests.unit.redact.test_redact import KEYS, PEM, gone

PLANTED = {
    **KEYS,
    "pem": PEM.format("RSA "),
    "json": '{"client_secret": "planted-0123456789abcdef"}',
    "address": "postgres://ann:planted-0123456789abcdef@db.example.com/x",
    "sentence": "my password is planted-0123456789abcdef",
    "environment": "DB_PASSWORD=planted-0123456789abcdef",
    "header": "Authorization: Bearer planted-0123456789abcdef",
}


def assert_clean(honcho: HonchoServer) -> None:
    sent = honcho.everything_received().decode("utf-8", "replace")
    for name, secret in PLANTED.items():
        for line in secret.split("\n")[1:-1] if name == "pem" else [secret]:
            assert gone("planted-0123456789abcdef" if "planted" in line else line, sent), name


async def test_no_planted_secret_is_ever_received(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    for name, secret in PLANTED.items():
        word = f"zebra{name.replace(' ', '').replace(',', '')}"
        entries = [
            log.turn(f"{word}: please keep {secret} for me", f"I keep\n{secret}\nsafe"),
            log.turn(f"cut:\n{secret[:40]}\n{secret[40:]}\n", "it is", session=f"session {secret}"[:400]),
            log.write(f"key {name}", f"value {secret}", metadata={"note": secret, "nested": {"list": [secret]}}),
            log.write(f"name {secret}"[:400], "a value"),
        ]
        assert {outcome.kind for outcome in await backend.apply(entries)} == {"ok"}
        await backend.apply([log.edit(entries[0], assistant=f"again {secret}")])
        hits = await backend.recall(Query("ann", f"{word} {secret}"[:4000]))
        assert any(word in hit.text for hit in hits), "found by its other words"
        await backend.query("ann", secret)
        await backend.retrieve("ann", f"name {secret}"[:400])
    assert_clean(honcho)
    assert b"[redacted:" in honcho.everything_received()


async def test_a_secret_across_the_pieces_of_a_long_text(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    for secret in (KEYS["github"], KEYS["anthropic"], PLANTED["pem"]):
        for before in (7_980, 7_999):
            await backend.apply([log.turn("x " * (before // 2) + secret + " y" * 4_000, "")])
    assert_clean(honcho)


async def test_the_log_keeps_what_was_said(private_home: Path, honcho: HonchoServer) -> None:
    config: dict[str, Any] = {"backend": "honcho", "backends": {"honcho": {"url": honcho.url}}}
    text = f"zebra {KEYS['github']} zebra"
    async with memoryd.open_runtime(private_home, config=config) as runtime:
        with memoryd.scope(user="ann", session="s"):
            accepted = runtime.sync_turn(text, "noted")
            await runtime.store("github", text)
            assert (await runtime.drain()).remote
            local = await runtime.find(accepted.event_id)
            memory = await runtime.retrieve("github")
            assert local is not None and local.text == text
            assert memory is not None and memory.value == text
            (found, *_) = await runtime.recall("zebra noted")
            assert found.source.startswith("honcho:")
            assert "[redacted:" in found.text
    assert_clean(honcho)


@pytest.mark.parametrize("field", ["user", "assistant"])
async def test_what_is_encoded_is_not_looked_into(honcho: HonchoServer, backend: HonchoBackend, log: Log, field: str) -> None:
    """Said in the documentation: base64 of a secret is no secret to a scanner of texts."""
    coded = base64.b64encode(KEYS["github"].encode()).decode()
    await backend.apply([log.turn(**{"user": "hello", "assistant": "", field: f"hello {coded}"})])
    assert coded.encode() in honcho.everything_received()
