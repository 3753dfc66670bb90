"""Evidence: which rows of a transcript carry what was said, and which bytes of any row are kept.

The rules, in the order in which they are asked:

1. A row that is no mapping, or that JSON cannot hold, is kept as its readable text and counted *degraded*; it is no evidence.
2. Only the roles ``user`` and ``assistant`` are evidence; system, developer and tool rows are not.
3. A row that its host marks as a summary or as host text (a flag such as ``isCompactSummary`` or ``_compressed_summary``, or the
   fixed opening of a compaction notice) is not evidence: nobody said it.
4. The text is the ``content``: as it is, or the text parts of a list, joined by line breaks.  Prose beside ``tool_calls`` counts, the
   calls do not; images, data URLs, tool results and thinking are no text.
5. Recalled text that we put there ourselves is no part of the text (``strip_echo``): nobody said it either.
6. The text is normalised: NFC, ``\\n`` line ends, no whitespace around.  A row without text is no evidence, and never an error.

No other key is part of identity: hosts add and change keys at will.  Rows are only read, never changed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memoryd.core._digest import canonical_bytes, keyed
from memoryd.core._echo import strip_echo

__all__ = ["Evidence", "evidence_of", "identity_of", "normalised", "raw_row", "readable", "row_text"]

ROLES = ("user", "assistant")
_SUMMARY_FLAGS = (
    "is_summary", "isSummary", "isCompactSummary", "isVisibleInTranscriptOnly", "isMeta", "_compressed_summary",
    "compressed_summary", "compact_summary", "compaction_output", "is_compaction",
)  # fmt: skip
_NESTED = ("metadata", "additional_kwargs", "extra")
_MARKS = frozenset({"summary", *_SUMMARY_FLAGS, *_NESTED})
_NOTICES = (
    "[CONTEXT COMPACTION", "[PRIOR CONTEXT", "[Context compaction", "This session is being continued from a previous conversation",
    "<environment_context>",
)  # fmt: skip
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_MAX_REPR = 1 << 20


class Evidence(NamedTuple):
    """What one row says: ``role`` is ``user`` or ``assistant``, ``text`` is normalised and not empty."""

    role: str
    text: str

    def __repr__(self) -> str:
        return f"Evidence(role={self.role!r})"

    def identity(self, digest: Callable[..., bytes]) -> bytes:
        return digest(self.role.encode(), self.text.encode("utf-8", "surrogatepass"))


def raw_row(row: object) -> tuple[bytes, bool]:
    """The bytes to keep of ``row``, and whether they are degraded: its canonical JSON, or the JSON string of its readable text.

    Never refuses a row.  Raises only ``RuntimeError``, for a row that another thread changes meanwhile: try again.
    """
    if type(row) is dict or isinstance(row, Mapping):
        try:
            return canonical_bytes(row if isinstance(row, dict) else dict(row)), False
        except RuntimeError:
            raise
        except Exception:  # noqa: BLE001  a foreign mapping may raise anything, and an odd row must never refuse
            pass
    return canonical_bytes(readable(row)), True


def readable(row: object) -> str:
    """Text that a person can read back: text as it is, bytes as UTF-8 (others as escapes), anything else its ``repr``, bounded."""
    if isinstance(row, str):
        return str(row)
    if isinstance(row, (bytes, bytearray)):
        return bytes(row).decode("utf-8", "backslashreplace")
    try:
        text = repr(row)
    except Exception as error:  # noqa: BLE001  a foreign object's repr may raise anything, and an odd row must never refuse
        text = f"<{type(row).__name__}: repr raised {type(error).__name__}>"
    return text if len(text) <= _MAX_REPR else f"{text[:_MAX_REPR]}... ({len(text)} characters)"


def evidence_of(row: object, marker: str = "") -> Evidence | None:
    """What ``row`` says, or None where it is no evidence; ``marker`` is that of the profile's fence, whose text goes.

    Never raises for any JSON value.
    """
    if type(row) is not dict and not isinstance(row, Mapping):
        return None
    role = row.get("role")
    if role not in ROLES or (not _MARKS.isdisjoint(row) and _is_host_text(row)):
        return None
    text = row_text(row.get("content"))
    text = normalised(strip_echo(text, marker) if marker else text)
    if not text or text.startswith(_NOTICES):
        return None
    return Evidence(role, text)


def row_text(content: object) -> str:
    """The text of a row's ``content``: text, or a list of parts of which the text parts count."""
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return "\n".join(text for text in map(_part_text, content) if text)
    return ""


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type", "text") in _TEXT_PARTS:
        text = part.get("text")
        return text if isinstance(text, str) else ""
    return ""


def _is_host_text(row: Mapping[str, Any]) -> bool:
    if row.get("summary") is True or any(map(row.get, _SUMMARY_FLAGS)):
        return True
    return any(_is_marked(row[name]) for name in _NESTED if name in row)


def _is_marked(nested: object) -> bool:
    if not isinstance(nested, Mapping):
        return False
    return nested.get("summary") is True or nested.get("lc_source") == "summarization" or any(map(nested.get, _SUMMARY_FLAGS))


def normalised(text: str) -> str:
    """``text`` in NFC, with ``\\n`` line ends and no whitespace around."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", text).strip()


def identity_of(key: bytes, evidence: Evidence) -> bytes:
    """The keyed digest over role and normalised text that stands for what was said, whatever host or row it came in."""
    return evidence.identity(lambda *parts: keyed(key, "identity", *parts))
