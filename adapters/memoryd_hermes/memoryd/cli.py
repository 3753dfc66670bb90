"""What Hermes loads for ``hermes memoryd``, where memoryd is the active provider."""

from memoryd_hermes import memoryd_command as memoryd_command
from memoryd_hermes import register_cli as register_cli
