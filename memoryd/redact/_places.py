"""Secrets that are known by where they stand: fields of JSON and configuration, headers, addresses, a sentence that gives one away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoryd.core import Span

__all__ = ["find_places"]

_PASSWORD = r"pass(?:word|wd|phrase|code)|pwd"
_SECRET = (
    r"secret|token|credentials?|(?:api|access|auth|account|private|signing|encryption|service|shared|subscription|webhook|client|master)"
    r"[_-]?key|signature|connection[_-]?string|client[_-]?secret"
)
# what may follow: password1, tokens, API_KEY_PROD, secretValue; not tokenize, secretary
_NAME = rf"(?P<name>(?:{_PASSWORD}|{_SECRET})(?:s|(?:[0-9_.-]|(?-i:[A-Z]))[A-Za-z0-9_-]{{0,32}})?)(?![A-Za-z0-9])"

# "api_key": "...", 'password' => '...', also as JSON inside a JSON text
_QUOTED = re.compile(
    rf"""{_NAME}(?:\\*["'])?\s{{0,8}}(?::|=>|:=|=)\s{{0,8}}(?P<open>\\*["'`])(?P<value>(?:(?!(?P=open))[^\n]){{1,4096}})""", re.IGNORECASE
)
# DB_PASSWORD=..., token: ..., --password ...
_BARE = re.compile(
    rf"""{_NAME}(?:\\*["'])?\s{{0,8}}(?P<sign>:=|=>|[:=])[ \t]{{0,8}}(?P<value>[^\s"'`,;&<>(){{}}\[\]\\]{{4,4096}})""", re.IGNORECASE
)
_OPTION = re.compile(rf"""(?<![A-Za-z0-9-])--?[A-Za-z0-9_-]{{0,40}}?{_NAME}[ \t]+(?P<value>[^\s"'`\[-][^\s"'`]{{5,1024}})""", re.IGNORECASE)
_SAID = re.compile(
    rf"""\b(?P<name>{_PASSWORD}|pin|secret|token|api key|access key)\s+(?:is|was|to|will be)\s*:?\s+["'`]?(?P<value>[^\s"'`]{{4,256}})""",
    re.IGNORECASE,
)
_HEADER = re.compile(r"\b(?:Bearer|Basic|Digest|Negotiate)[ \t]+(?P<value>[A-Za-z0-9+/=._~-]{12,4096})")
_NAMED_HEADER = re.compile(
    r"""\b(?:(?:Proxy-)?Authorization|X-[A-Za-z-]{0,40}(?:Key|Token|Secret))["']?[ \t]*:[ \t]*["']?"""
    r"""(?:[A-Za-z]{3,10}[ \t]+)?(?P<value>[^\s"',;]{6,4096})""",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"""\b(?:Set-)?Cookie["']?[ \t]*:[ \t]*["']?(?P<value>[^\s=;"']{1,128}=[^\n"']{4,4096})""", re.IGNORECASE)
# scheme://user:password@host, and a lone long one before the @
_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,31}://(?P<value>[^\s/?#@]{0,256}:[^\s/?#]{1,256}|[^\s/?#@:]{16,256})@")
_SIGNED = re.compile(r"[?&](?:sig|key|code|X-Amz-Signature|X-Amz-Security-Token|X-Goog-Signature)=(?P<value>[^\s&#\"']{8,4096})")

# what a text holds, in lower case, if the pattern can find anything: a search for a plain text is fifty times faster
_ALONE = (
    ("authorization", _HEADER, ("bearer", "basic", "digest", "negotiate")),
    ("authorization", _NAMED_HEADER, ("authorization", "x-")),
    ("cookie", _COOKIE, ("cookie",)),
    ("url-userinfo", _ADDRESS, ("://",)),
    ("url-signature", _SIGNED, ("?", "&")),
)
_NAMED = (_QUOTED, _BARE, _OPTION, _SAID)
_NAMES = ("passw", "passp", "passc", "pwd", "secret", "token", "credential", "key", "signature", "connection", "pin ")
_IS_PASSWORD = re.compile(_PASSWORD, re.IGNORECASE)
_CODE = re.compile(
    r"os\.|process\.env|getenv|env\.|\$\{?[A-Za-z_]|<[a-z]|\[redacted:|(?:None|null|true|false|string|str)$", re.IGNORECASE
)


def find_places(text: str) -> Iterator[Span]:
    """Every value in ``text`` that its place gives away as a secret."""
    lowered = text.lower()
    for label, pattern, hints in _ALONE:
        if any(hint in lowered for hint in hints):
            yield from (Span(*found.span("value"), label) for found in pattern.finditer(text))
    if not any(name in lowered for name in _NAMES):
        return
    for pattern in _NAMED:
        for found in pattern.finditer(text):
            if _is_secret(pattern, found):
                yield Span(*found.span("value"), "password" if _IS_PASSWORD.search(found["name"]) else "secret")


def _is_secret(pattern: re.Pattern[str], found: re.Match[str]) -> bool:
    """A value that only refers to a secret, or reads like a word of a sentence, is none."""
    value = found["value"]
    if _CODE.match(value) or (value.isdigit() and len(value) < 8 and pattern is not _SAID and not _IS_PASSWORD.search(found["name"])):
        return False  # max_tokens=4096
    if pattern is _QUOTED:
        return len(value.strip()) >= 3
    if pattern is _SAID or (pattern is _BARE and found["sign"] == ":" and not _IS_PASSWORD.search(found["name"])):
        return _is_mixed(value)
    return True


def _is_mixed(value: str) -> bool:
    word = value.strip(".,;:!?)")
    return any(char.isdigit() for char in word) or any(char in "!@#$%^&*+=_/~|" for char in word) or len(word) >= 24
