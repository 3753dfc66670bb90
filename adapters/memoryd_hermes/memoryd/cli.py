"""What Hermes loads for ``hermes memoryd``, where memoryd is the active provider."""

from memoryd_hermes._cli import memoryd_command as memoryd_command
from memoryd_hermes._cli import register_cli as register_cli
