"""The archive of a test's home, read in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memoryd.checkpoint import Gate
from memoryd.core import CheckpointInfo
from memoryd.store import open_profile

__all__ = ["Archive"]


class Archive:
    """Opened anew for each look: the gate under test has it open too."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def gate(self) -> Gate:
        return Gate(open_profile(self._home, "default"), environ={})

    def list(self) -> list[CheckpointInfo]:
        gate = self.gate
        try:
            return list(gate.shelf.list())
        finally:
            gate.close()

    def source(self, id: str) -> bytes | None:
        gate = self.gate
        try:
            return gate.shelf.restore(id, full=True).source
        finally:
            gate.close()

    def rows(self, id: str) -> list[Any]:
        gate = self.gate
        try:
            return [None if row is None else json.loads(row) for row in gate.shelf.restore(id).rows]
        finally:
            gate.close()

    def verified(self) -> bool:
        gate = self.gate
        try:
            return gate.shelf.verify().ok
        finally:
            gate.close()
