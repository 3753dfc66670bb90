"""Keeping profiles safe and whole: backup, restore, repair; list, create, copy, rename, delete, rekey.  All of it blocks.

Its names load when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.maintain._backup import BackedUp as BackedUp
    from memoryd.maintain._backup import back_up as back_up
    from memoryd.maintain._bundle import Manifest as Manifest
    from memoryd.maintain._bundle import read_manifest as read_manifest
    from memoryd.maintain._copy import Copied as Copied
    from memoryd.maintain._copy import copy_profile as copy_profile
    from memoryd.maintain._copy import rekey_profile as rekey_profile
    from memoryd.maintain._profiles import Profile as Profile
    from memoryd.maintain._profiles import create_profile as create_profile
    from memoryd.maintain._profiles import delete_profile as delete_profile
    from memoryd.maintain._profiles import list_profiles as list_profiles
    from memoryd.maintain._profiles import profile_names as profile_names
    from memoryd.maintain._profiles import rename_profile as rename_profile
    from memoryd.maintain._repair import Finding as Finding
    from memoryd.maintain._repair import Repaired as Repaired
    from memoryd.maintain._repair import repair as repair
    from memoryd.maintain._restore import RestoredProfile as RestoredProfile
    from memoryd.maintain._restore import restore as restore

_HOMES = {
    "BackedUp": "_backup",
    "back_up": "_backup",
    "Manifest": "_bundle",
    "read_manifest": "_bundle",
    "Copied": "_copy",
    "copy_profile": "_copy",
    "rekey_profile": "_copy",
    "Profile": "_profiles",
    "create_profile": "_profiles",
    "delete_profile": "_profiles",
    "list_profiles": "_profiles",
    "profile_names": "_profiles",
    "rename_profile": "_profiles",
    "Finding": "_repair",
    "Repaired": "_repair",
    "repair": "_repair",
    "RestoredProfile": "_restore",
    "restore": "_restore",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.maintain' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.maintain.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
