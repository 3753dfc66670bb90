"""The event log of a profile and what hangs on it: cursors, dead letters, erasures, privacy of sessions."""

from memoryd.journal._erasure import ErasePlan as ErasePlan
from memoryd.journal._erasure import Erasures as Erasures
from memoryd.journal._erasure import PendingErasure as PendingErasure
from memoryd.journal._intake import Intake as Intake
from memoryd.journal._journal import Journal as Journal
from memoryd.journal._journal import Limits as Limits
from memoryd.journal._outbox import DeadLetter as DeadLetter
from memoryd.journal._outbox import Outbox as Outbox
from memoryd.journal._privacy import Privacy as Privacy
from memoryd.journal._room import default_floor as default_floor
