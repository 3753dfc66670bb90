"""A profile made of another: a copy under another name, or the same profile under a new key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from memoryd.core import Config, Value, check_name
from memoryd.maintain._identity import become, renew_epoch
from memoryd.maintain._place import beside, carry_over, put, take_second
from memoryd.maintain._profiles import absent, existing, fallback_of
from memoryd.maintain._rekey import renew_key
from memoryd.maintain._settle import settle
from memoryd.maintain._snapshot import take_snapshot
from memoryd.maintain._staging import aside, staging
from memoryd.store import ProfileStore, alone, private_directory, profile_directory

__all__ = ["Copied", "copy_profile", "rekey_profile"]

Told = Callable[[int, int], None]


@attrs.frozen(slots=True, eq=False, repr=False)
class Copied(Value):
    """The profile ``name`` in ``directory``, up to event ``events``; ``kept`` is where the one before is, empty where there was none."""

    name: str
    directory: str
    instance: str
    events: int
    kept: str = ""
    warnings: tuple[str, ...] = ()


def copy_profile(home: Path, old: str, new: str, config: Config, on_progress: Told = lambda done, total: None) -> Copied:
    """Make the profile ``new`` of what ``old`` holds now; ``old`` may be in use.

    The copy is an instance of its own, with a key and an epoch of its own, so that it never delivers as the original, and ids of
    checkpoints differ.  Configuration is not copied, nor is a second archive.  Raises :class:`InvalidInput`, ``StoreError``.
    """
    profile, directory = existing(home, old), absent(home, check_name("profile", new))
    with staging(home.absolute()) as stage:
        draft, events, warnings = _made(profile, new, config, stage, on_progress)
        second = take_second(draft, stage, new)
        warnings += settle(stage, new, config, second)
        fresh = renew_key(stage, new)
        if second is not None:
            warnings += (f"the second archive of {old!r} was not copied",)
        carry_over(profile.directory, draft, configuration=False)
        absent(home, new)
        put(draft, directory)
    return Copied(new, str(directory), fresh.instance, events, warnings=warnings)


def rekey_profile(home: Path, name: str, config: Config, on_progress: Told = lambda done, total: None) -> Copied:
    """Renew the key of the profile, and its instance and epoch; every digest is made anew, so that ids of checkpoints change.

    For a key that became known, and for a home that was copied by hand.  The profile as it was is kept aside.  Remote backends get
    everything again, under other ids; what they hold under the old ones stays there.  Raises :class:`InvalidInput`,
    :class:`StoreLocked` where the profile is in use, ``StoreError``; a crash leaves the one or the other.
    """
    profile = existing(home, name)
    with alone(profile.directory), staging(home.absolute()) as stage:
        draft, events, warnings = _made(profile, name, config, stage, on_progress)
        second = take_second(draft, stage, name)
        warnings += settle(stage, name, config, second)
        fresh = renew_key(stage, name, second)
        carry_over(profile.directory, draft)
        kept, target = aside(profile.directory), fallback_of(config, name)
        before, after = [(profile.directory, kept)], []
        if second is not None and target is not None:
            before.append((target, aside(target)))
            after.append((beside(second / target.name, target), target))
        put(draft, profile.directory, before, after)
    return Copied(name, str(profile.directory), fresh.instance, events, str(kept), warnings)


def _made(profile: ProfileStore, name: str, config: Config, stage: Path, told: Told) -> tuple[Path, int, tuple[str, ...]]:
    """What ``profile`` holds now, as the profile ``name`` below ``stage``: an instance and an epoch of its own."""
    draft = profile_directory(stage, name)
    private_directory(draft)
    seen = take_snapshot(profile, config, draft, told)
    become(draft, name)
    renew_epoch(draft / "log.db")
    return draft, seen.head, seen.warnings
