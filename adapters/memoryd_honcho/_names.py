"""What is called what at Honcho: ids are keyed digests, so that two names never become one and no name leaves the machine in them."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache

from memoryd.core import Scope, keyed

__all__ = ["LABELS", "Names"]

LABELS = {"agent": "a", "workspace": "w", "platform": "p"}
"""The labels of a scope and their field in a message's metadata."""


class Names:
    """The names of one profile.  Its key makes them: another profile in the same workspace has other ids for the same users."""

    def __init__(self, key: bytes, peers: Mapping[str, str]) -> None:
        self._key = key
        self._peers = peers
        self._digest = lru_cache(4096)(self._made)

    def user(self, user: str) -> str:
        """What marks everything of ``user`` in metadata."""
        return self._digest("user", user)

    def peer(self, user: str) -> str:
        return self._peers.get(user) or f"u-{self.user(user)}"

    def thread(self, user: str, session: str | None) -> str:
        """The session that says which session holds the messages of a thread now.  It is never deleted."""
        return f"th-{self._digest('thread', user, *([] if session is None else [session]))}"

    def memory(self, user: str, key: str) -> str:
        """The session whose metadata is the memory ``key``.  It is never deleted."""
        return f"kv-{self._digest('memory', user, key)}"

    def probe(self) -> str:
        """The session that health writes and reads."""
        return f"hc-{self._digest('health')}"

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Metadata fields for ``labels``."""
        return {LABELS[name]: self._digest(name, value) for name, value in labels.items() if name in LABELS}

    def labels_of(self, scope: Scope) -> dict[str, str]:
        given = {"agent": scope.agent, "workspace": scope.workspace, "platform": scope.platform}
        return self.labels({name: value for name, value in given.items() if value is not None})

    def _made(self, kind: str, *names: str) -> str:
        parts = [name.encode("utf-8", "surrogatepass") for name in names]
        return urlsafe_b64encode(keyed(self._key, "honcho", kind.encode(), *parts)).decode().rstrip("=")
