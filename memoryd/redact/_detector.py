"""Kingfisher's rules as a detector.  Only its scanner is used: it reads the text and opens no connection."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kingfisher_sdk import Rules, Scanner

from memoryd.core import Detector, Span

__all__ = ["make_detector"]

# rules that only help others find theirs (an account's id, a host) are left out, unless they name a secret themselves
_HELPER_SECRET = re.compile(r"secret|token|passphrase|access-key$")
_SHORTEST = 8  # characters; a shorter finding says nothing without what stands around it


def make_detector() -> Detector:
    """Compile the rules; seconds at the first time on a machine, then they are read from the user's cache directory."""
    scanner = Scanner(Rules(), base64=False)

    def find(text: str) -> Iterator[Span]:
        for finding in scanner.scan(text.encode("utf-8", "replace")):
            if finding.visible or _HELPER_SECRET.search(finding.rule_id.partition(".")[2]):
                yield from _everywhere(text, finding.secret, _label(finding.rule_id))

    return find


def _label(rule: str) -> str:
    """``betterleaks.github-pat`` is ``github-pat``, ``veles.secrets/npmjs`` is ``npmjs``."""
    return re.sub(r"\.\d+$", "", rule.partition(".")[2]).rpartition("/")[2]


def _everywhere(text: str, secret: str, label: str) -> Iterator[Span]:
    """Every place of ``secret``: a rule may need a hint beside the first one that the others do not have."""
    if len(secret) < _SHORTEST:
        return
    start = text.find(secret)
    while start >= 0:
        yield Span(start, start + len(secret), label)
        start = text.find(secret, start + len(secret))
