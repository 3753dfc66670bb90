"""``memoryd repair``."""

from __future__ import annotations

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, progress, to_json, write_json, write_line
from memoryd.cli._session import loaded


@command(name="repair")
@click.option("--dry-run", is_flag=True, help="Only say what is wrong, and what would be done.")
@click.option("--rebuild", is_flag=True, help="Make memory.db anew from the log, also where it looks sound.")
@pass_options
def repair(options: Options, dry_run: bool, rebuild: bool) -> int:
    """Find what is damaged in the files of the profile, and mend it.

    A damaged file is put aside in quarantine/, never deleted; what can be read of a damaged log or archive is kept; memory.db and its
    full-text index are made anew from the log; a log or an archive that is gone is begun anew.  Nobody may use the profile meanwhile,
    but for --dry-run.

    Exit code 0: nothing was wrong, or all of it is mended without a loss.  1: something is lost, or was only looked at.

    \b
    Examples:
      memoryd repair --dry-run
      memoryd repair --json
      memoryd repair --rebuild
    """
    from memoryd.maintain import repair as mend

    found = loaded(options)
    with progress("repairing") as told:
        done = mend(found.home, found.profile, found.config, dry_run=dry_run, rebuild=rebuild, on_progress=told)
    if options.json:
        write_json({"ok": done.whole, **to_json(done)})
        return 0 if done.whole else 1
    for finding in done.findings:
        write_line(f"{plain(finding.file)}: {plain(finding.problem)}: {'would be ' if dry_run else ''}{plain(finding.remedy)}")
        if finding.kept:
            write_line(f"    kept {plain(finding.kept)}")
    if not done.findings:
        write_line("nothing is wrong")
    return 0 if done.whole else 1
