"""What is taken out of a text, and what stays."""

from __future__ import annotations

import base64
import random
import string
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import Redactor, Span, blank
from memoryd.redact import load_redactor

_random = random.Random(20_26)
HEX, UPPER, MIXED = "0123456789abcdef", string.ascii_uppercase + "234567", string.ascii_letters + string.digits


def some(length: int, letters: str = MIXED) -> str:
    return "".join(_random.choice(letters) for _ in range(length))


# put together here, so that no scanner of this repository takes them for real ones
KEYS = {
    "aws": "AK" + "IA" + some(16, UPPER),
    "github": "gh" + "p_" + some(36),
    "github app": "gh" + "s_" + some(36),
    "github fine-grained": "github" + "_pat_" + some(22) + "_" + some(59),
    "gitlab": "gl" + "pat-" + some(20),
    "openai": "sk" + "-proj-" + some(48),
    "openai, old": "sk" + "-" + some(48),
    "anthropic": "sk" + "-ant-api03-" + some(93) + "AA",
    "openrouter": "sk" + "-or-v1-" + some(64, HEX),
    "google": "AI" + "za" + some(35),
    "google oauth": "ya" + "29." + some(60),
    "google client": "GOC" + "SPX-" + some(28),
    "slack": "xo" + "xb-123456789012-123456789012-" + some(24),
    "slack hook": "https://hooks." + "slack.com/services/T0000AAAA/B0000AAAA/" + some(24),
    "stripe": "sk" + "_live_" + some(24),
    "stripe restricted": "rk" + "_live_" + some(24),
    "sendgrid": "SG" + "." + some(22) + "." + some(43),
    "mailgun": "key" + "-" + some(32, HEX),
    "twilio": "SK" + some(32, HEX),
    "npm": "npm" + "_" + some(36),
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + some(80),
    "docker": "dckr" + "_pat_" + some(27),
    "hugging face": "hf" + "_" + some(34),
    "groq": "gsk" + "_" + some(52),
    "digitalocean": "dop" + "_v1_" + some(64, HEX),
    "shopify": "shp" + "at_" + some(32, HEX),
    "linear": "lin" + "_api_" + some(40),
    "telegram": "123456789" + ":" + some(35),
    "discord": "M" + some(23) + "." + some(6) + "." + some(27),
    "databricks": "dap" + "i" + some(32, HEX),
    "vault": "hv" + "s." + some(90),
    "grafana": "gl" + "sa_" + some(32) + "_" + some(8, HEX),
    "new relic": "NR" + "AK-" + some(27, string.ascii_uppercase + string.digits),
    "age": "AGE-" + "SECRET-KEY-1" + some(58, string.ascii_uppercase + string.digits),
    "honcho": "hc" + "h-v3-" + some(40),
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9." + base64.b64encode(b'{"sub":"1234567890"}').decode().rstrip("=") + "." + some(43),
}  # fmt: skip


@pytest.fixture(scope="module")
def redact() -> Redactor:
    return load_redactor()


def gone(secret: str, text: str) -> bool:
    """Whether no stretch of 8 characters of ``secret`` that is random is in ``text``."""
    tail = secret[-16:]
    return not any(tail[at : at + 8] in text for at in range(len(tail) - 7))


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize(
    "around",
    ["my key is {} remember the zebra", "{}\nremember the zebra", "zebra\n{}", '{{"zebra": ["{}"]}}', "zebra `{}`.", "zebra={}", "(zebra) <{}>", "zebra\t{}\r\n"],
)
def test_keys_go_and_words_stay(redact: Redactor, name: str, around: str) -> None:
    found = redact(around.format(KEYS[name]))
    assert gone(KEYS[name], found)
    assert "zebra" in found
    assert "remember the" in found or "remember" not in around


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("break_", ["\n", "\r\n", "\n> ", " \\\n    ", "\n    ", '" \\\n    "', '" +\n  "', "\\n"])
def test_keys_that_are_broken_over_lines(redact: Redactor, name: str, break_: str) -> None:
    key = KEYS[name]
    for parts in ([key[: len(key) // 2], key[len(key) // 2 :]], [key[:14], key[14:28], key[28:]]):
        found = redact(f"look:\n{break_.join(part for part in parts if part)}\nzebra crossing")
        assert gone(key, found), found
        assert "zebra crossing" in found


PEM = "-----BEGIN {0}PRIVATE KEY-----\n" + "\n".join(some(64, MIXED + "+/") for _ in range(8)) + "\n" + some(20) + "==\n-----END {0}PRIVATE KEY-----"


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_keys(redact: Redactor, kind: str) -> None:
    key = PEM.format(kind)
    lines = key.split("\n")[1:-1]
    shapes = [key, key.replace("\n", "\r\n"), key.replace("\n", "\\n"), textwrap.indent(key, "  "), textwrap.indent(key, "> "), "\n".join(key.split("\n")[:5])]
    for shape in shapes:
        found = redact(f"here it is:\n{shape}\n\nThe zebra is safe.")
        assert not any(line[:20] in found for line in lines)
        assert "The zebra is safe." in found


@pytest.mark.parametrize(
    "text",
    [
        '{"api_key": "opaque-value-77"}', "{'password': 'opaque-value-77'}", '{"a": {"client_secret" : "opaque-value-77"}}',
        '{\\"token\\": \\"opaque-value-77\\"}', '{\\\\\\"access_token\\\\\\": \\\\\\"opaque-value-77\\\\\\"}', "DB_PASSWORD=opaque-value-77",
        "export GITHUB_TOKEN='opaque-value-77'", "password: opaque-value-77", "secret_key = `opaque-value-77`", "--api-key opaque-value-77",
        "mysql --password=opaque-value-77 -u root", "'auth_token' => 'opaque-value-77',", "my password is opaque-value-77", "apiKey: opaque-value-77",
        "Authorization: Bearer opaque-value-77", "curl -H 'X-Api-Key: opaque-value-77'", "authorization: Basic opaquevalue77==", "Cookie: sid=opaque-value-77",
        "https://ann:opaque-value-77@example.com/x", "postgres://ann:opaque-value-77@db/x", "redis://:opaque-value-77@cache:6379",
        "https://x-access-opaque-value-77@github.com/a/b", "https://example.com/?a=1&sig=opaque-value-77", "password=opaque-\nvalue-77",
        "passwd: 'opaque value-77'", "PIN is opaque-value-77", "private_key: opaque-value-77", "connectionString=\"opaque-value-77\"",
    ],
)  # fmt: skip
def test_secrets_that_are_known_by_their_place(redact: Redactor, text: str) -> None:
    found = redact(f"zebra {text} zebra")
    assert "value-77" not in found
    assert "opaquevalue77" not in found
    assert found.startswith("zebra")


@pytest.mark.parametrize(
    "text",
    [
        "The secret of happiness is to want less.", "My password is wrong again, what now?", "max_tokens=4096 and temperature: 0.2",
        "password = os.environ['DB_PASSWORD']", "token: str = field()", "Secretary: Anna-Maria", "tokenize = nltk.word_tokenize",
        "See https://example.com:8080/a@b?page=2#top", "git clone git@github.com:a/b.git over ssh://git@host/x", "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "The key to success: patience.", "def f(api_key: str | None) -> None", "Is the token limit 200000?", "a-b_c.d/e:f and 550e8400-e29b-41d4-a716-446655440000",
        "line one ends\nhere and goes on\nwith-words and-more\n", "日本語のテキスト、パスワードは秘密です", "", "[redacted:password]", "password=[redacted:password]",
        "sk-learn is scikit-learn", "the gh_pages branch", "hf_hub is a package", "price: $5 & pass: yes",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(redact: Redactor, text: str) -> None:
    assert redact(text) == text


@given(st.text(st.characters(exclude_categories=()), max_size=80) | st.lists(st.sampled_from(["password=", "token", ":", " ", "\n", "x1", "\ud83d", "\0", '"', "sk-"])).map("".join))
def test_any_text_is_survived_and_stays_as_it_is_the_second_time(text: str) -> None:
    redact = load_redactor()
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "text",
    ["a" * 60_000, "x:" * 30_000, "https://" + "a:" * 30_000, "password" * 8_000, 'token="' * 9_000, "eyJabcdefgh." * 5_000, "-----BEGIN PRIVATE KEY-----" * 2_000, "a\n" * 30_000, "Ab1\n" * 15_000],
    ids=lambda text: text[:12].encode("unicode_escape").decode(),
)
def test_no_text_takes_for_ever(redact: Redactor, text: str) -> None:
    redact(text)


def test_spans_are_merged() -> None:
    assert blank("0123456789", [Span(6, 8, "b"), Span(1, 3, "a"), Span(2, 4, "c"), Span(4, 5, "d"), Span(9, 9, "none")]) == "0[redacted:a]5[redacted:b]89"
    assert blank("text", []) == "text"


def test_the_detector_loads_with_the_first_redactor_and_opens_no_connection() -> None:
    program = """
import socket, sys
import memoryd.redact
assert "kingfisher_sdk" not in sys.modules
def refuse(*args, **kwargs): raise AssertionError("a connection")
socket.socket.connect = refuse
redact = memoryd.redact.load_redactor()
assert redact is memoryd.redact.load_redactor()
print(redact("password: hunter2"), "kingfisher_sdk" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "password: [redacted:password] True\n"


@pytest.mark.parametrize("before", [0, 39_990, 65_500, 65_536, 131_000])
def test_secrets_at_the_edges_of_the_windows_of_a_large_text(redact: Redactor, before: int) -> None:
    text = "word " * (before // 5) + PEM.format("RSA ") + "\n" + "word " * 20_000 + KEYS["github"] + " zebra"
    found = redact(text)
    assert gone(KEYS["github"], found)
    assert "-----" not in found
    assert found.endswith(" zebra")
    assert found.count("word ") == text.count("word ")
