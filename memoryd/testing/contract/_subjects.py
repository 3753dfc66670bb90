"""The subjects that memoryd brings itself: each bundled backend, with the faults that it can be made to meet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryd.core import Backend
from memoryd.runtime import find_backend
from memoryd.store import Options, connect
from memoryd.testing.contract._bench import Subject
from memoryd.testing.honcho import Fault, HonchoServer

__all__ = ["installed_subject", "subject"]


@contextmanager
def subject(name: str) -> Iterator[Subject]:
    """The installed backend ``name``; Honcho always on a stand-in, whatever the environment says: nothing leaves the machine.

    Raises :class:`BackendNotFound`, and :class:`BackendPermanent` where it cannot be imported.
    """
    if name != "honcho":
        yield installed_subject(name)
        return
    with HonchoServer() as server:
        config = {"url": server.url, "settle": 0.05}
        faults = {kind: lambda backend, fault=fault: _ill(server, fault) for kind, fault in _HONCHO_FAULTS.items()}
        yield Subject(name, find_backend(name).load(), config, faults)


_HONCHO_FAULTS: dict[str, Fault] = {
    "transient": Fault("lock", on="add_messages", times=1000),
    "permanent": Fault("status", on="add_messages", status=422, times=1000),
    "ambiguous": Fault("lost", on="add_messages", times=1000),
}


@contextmanager
def _ill(server: HonchoServer, fault: Fault) -> Iterator[None]:
    """Every request that ``fault`` means meets it."""
    server.faults.append(fault)
    try:
        yield
    finally:
        server.faults.clear()


def installed_subject(name: str) -> Subject:
    """The installed backend ``name`` with its default configuration.

    Raises :class:`BackendNotFound`, and :class:`BackendPermanent` where it cannot be imported.
    """
    faults = {"transient": locked} if name == "local" else {}
    return Subject(name, find_backend(name).load(), faults=faults)


@contextmanager
def locked(backend: Backend) -> Iterator[None]:
    """Another connection holds the write lock of the local backend's file."""
    other = connect(Path(backend.info.data_location), Options())
    try:
        with other.transaction("IMMEDIATE"):
            yield
    finally:
        other.close()
