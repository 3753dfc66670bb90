"""A Honcho server for tests: real HTTP, a memory of its own, and the faults that real ones were seen to have."""

from memoryd.testing.honcho._api import Modes as Modes
from memoryd.testing.honcho._faults import Fault as Fault
from memoryd.testing.honcho._faults import FaultName as FaultName
from memoryd.testing.honcho._server import HonchoServer as HonchoServer
from memoryd.testing.honcho._server import Received as Received
from memoryd.testing.honcho._store import Space as Space
