"""What Hermes loads as the memory provider memoryd; a host takes this folder for one because of register_memory_provider here."""

from memoryd_hermes import MemorydProvider as MemorydProvider
from memoryd_hermes import register as register
