"""The archive of transcripts, and the gate that refuses a compaction whose transcript is not safely in it."""

from memoryd.checkpoint._archive import Archive as Archive
from memoryd.checkpoint._collect import Collected as Collected
from memoryd.checkpoint._select import Erasure as Erasure
