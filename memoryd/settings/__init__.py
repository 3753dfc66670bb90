"""Reads configuration files and the environment into the schema of ``memoryd.core``.  Light: no trio, no SQLite."""

from memoryd.settings._load import Loaded as Loaded
from memoryd.settings._load import Shown as Shown
from memoryd.settings._load import describe as describe
from memoryd.settings._load import load_config as load_config
from memoryd.settings._paths import config_paths as config_paths
from memoryd.settings._paths import resolve_home as resolve_home
from memoryd.settings._paths import resolve_socket as resolve_socket
from memoryd.settings._sample import default_toml as default_toml
