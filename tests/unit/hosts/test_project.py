"""Which project a directory belongs to: every line of the table."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from memoryd.hosts import look_at_git, project_of

TREE = {
    "/w/mono": "",
    "/w/mono/vendor/lib": "gitdir: ../../.git/modules/vendor/lib",
    "/w/tree": "gitdir: /w/mono/.git/worktrees/tree",
    "/w/relative": "gitdir: ../mono/.git/worktrees/relative\n",
    "/w/bare-tree": "gitdir: /srv/bare.git/worktrees/bare-tree",
    "/w/odd": "nonsense",
}


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("/w/mono", "/w/mono"),
        ("/w/mono/packages/a/src", "/w/mono"),
        ("/w/mono/./packages/../packages/a/", "/w/mono"),
        ("/w/tree/src", "/w/mono"),
        ("/w/relative", "/w/mono"),
        ("/w/bare-tree/src", "/srv/bare.git"),
        ("/w/mono/vendor/lib/src", "/w/mono/vendor/lib"),
        ("/w/odd", "/w/odd"),
        ("/w/plain/folder", "/w/plain/folder"),
        ("/", "/"),
        ("", ""),
        ("relative", ""),
    ],
)
def test_the_table(cwd: str, expected: str) -> None:
    assert project_of(cwd, TREE.get) == expected


def test_a_folder_of_a_monorepo_may_stand_for_itself() -> None:
    assert project_of("/w/mono/packages/a", TREE.get, "folder") == "/w/mono/packages/a"


def test_a_label_is_never_too_long_and_never_another_s() -> None:
    one, two = "/w/" + "x" * 600 + "/a", "/w/" + "y" * 300 + "x" * 300 + "/a"
    assert len(project_of(one, {}.get)) <= 500
    assert project_of(one, {}.get) != project_of(two, {}.get)


def test_real_repositories(tmp_path: Path) -> None:
    def git(*arguments: str, cwd: Path) -> None:
        identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, env={**os.environ, **identity})

    main, tree = tmp_path / "my repo", tmp_path / "träe"
    main.mkdir()
    git("init", cwd=main)
    git("commit", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", str(tree), cwd=main)
    (main / "a/b").mkdir(parents=True)
    assert project_of(str(main / "a/b"), look_at_git) == str(main)
    assert project_of(str(tree), look_at_git) == str(main)
    assert project_of(str(main / "deleted/long/ago"), look_at_git) == str(main)
    assert project_of(str(tmp_path / "elsewhere"), look_at_git) == str(tmp_path / "elsewhere")
