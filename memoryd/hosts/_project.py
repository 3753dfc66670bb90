"""Which project a working directory belongs to: the label ``workspace`` of what is said there.

=====================================  ====================================================================
working directory                      project
=====================================  ====================================================================
root of a git repository               the root
folder inside one (also of a monorepo) the root; the folder itself where ``capture.workspace`` is *folder*
a worktree of a repository             the root of the repository that it is a worktree of
a submodule                            the submodule's own root
no git above it                        the directory itself
deleted, or not readable               the directory as the host names it
=====================================  ====================================================================

A label never isolates: recall covers all projects unless it is asked for one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

__all__ = ["Look", "look_at_git", "project_of"]

Look: TypeAlias = Callable[[str], "str | None"]
"""What is at ``path/.git``: None for nothing, an empty text for a directory, else the text of the file."""

_LONGEST = 500


def project_of(cwd: str, look: Look, sharing: str = "repository") -> str:
    """The label of ``cwd``, an absolute path; an empty text for none.  ``sharing``: *repository* or *folder*.  Pure but for ``look``."""
    if not cwd.startswith("/"):
        return ""
    cwd = os.path.normpath(cwd)
    if sharing == "folder":
        return _short(cwd)
    for folder in _upwards(cwd):
        found = look(folder)
        if found is not None:
            return _short(_root(folder, found))
    return _short(cwd)


def _upwards(path: str) -> Iterator[str]:
    while True:
        yield path
        parent = os.path.dirname(path)
        if parent == path:
            return
        path = parent


def _root(folder: str, found: str) -> str:
    """A file ``.git`` names the git directory: below ``worktrees`` it is another working tree of the same repository."""
    if not found.startswith("gitdir:"):
        return folder
    directory = os.path.normpath(os.path.join(folder, found.removeprefix("gitdir:").strip()))
    parent, kind = os.path.split(os.path.dirname(directory))
    if kind != "worktrees":
        return folder
    return os.path.dirname(parent) if os.path.basename(parent) == ".git" else parent


def _short(path: str) -> str:
    """A label has at most 500 characters; of a longer path the end, with a digest of the whole."""
    if len(path) <= _LONGEST:
        return path
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return f"{digest}:{path[-400:]}"


def look_at_git(folder: str) -> str | None:
    """The :data:`Look` of the real file system."""
    path = os.path.join(folder, ".git")
    try:
        if os.path.isdir(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(4096)
    except OSError:
        return None
