"""The archive of transcripts, and the gate that refuses a compaction whose transcript is not safely in it.  No trio in here."""

from memoryd.checkpoint._archive import Archive as Archive
from memoryd.checkpoint._collect import Collected as Collected
from memoryd.checkpoint._gate import GATE_MODES as GATE_MODES
from memoryd.checkpoint._gate import Gate as Gate
from memoryd.checkpoint._gate import GateStatus as GateStatus
from memoryd.checkpoint._gate import gate_mode as gate_mode
from memoryd.checkpoint._gate import refusal as refusal
from memoryd.checkpoint._marks import ErasedMark as ErasedMark
from memoryd.checkpoint._select import Erasure as Erasure
from memoryd.checkpoint._shelf import Shelf as Shelf
from memoryd.checkpoint._transcript import read_source as read_source
from memoryd.checkpoint._transcript import read_transcript as read_transcript
from memoryd.checkpoint._verify import Progress as Progress
