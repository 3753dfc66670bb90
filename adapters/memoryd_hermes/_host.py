"""Hermes Agent as memoryd's installer and doctor see it."""

from __future__ import annotations

from memoryd.errors import ConfigError
from memoryd.hosts import HostInfo, Place
from memoryd_hermes._checks import checks
from memoryd_hermes._config_yaml import HostConfig
from memoryd_hermes._install import plan_install, plan_uninstall
from memoryd_hermes._places import home_of
from memoryd_hermes._version import installed_host

__all__ = ["host"]


class HermesHost:
    """The object behind the entry point ``hermes`` of ``memoryd.hosts``."""

    info = HostInfo(
        "hermes",
        "Hermes Agent",
        "native",
        "native gate on hosts with checkpoint contract v2; best effort before: archived, but a failure cannot stop the compaction",
        since="0.22",
    )

    def present(self, place: Place) -> bool:
        return installed_host() is not None or home_of(place).is_dir()

    def installed(self, place: Place) -> bool:
        try:
            return bool(HostConfig.read(home_of(place)).get("memory", "provider") == "memoryd")
        except ConfigError:
            return False

    plan_install = staticmethod(plan_install)
    plan_uninstall = staticmethod(plan_uninstall)
    checks = staticmethod(checks)


host = HermesHost()
