"""The default backend: SQLite and its full-text search, in the profile's own directory.  No network, no model."""

from memoryd_local._backend import LocalBackend as LocalBackend
from memoryd_local._backend import create as create

__all__ = ["LocalBackend", "create"]
