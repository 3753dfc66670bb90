"""Tools for tests of memoryd and of what is built on it: public, and free of pytest."""

from memoryd.store.faulty import Fault as Fault
from memoryd.store.faulty import FaultKind as FaultKind
from memoryd.store.faulty import FaultyVFS as FaultyVFS
from memoryd.store.faulty import FileKind as FileKind
from memoryd.store.faulty import Operation as Operation
from memoryd.testing._crash import ChildFailed as ChildFailed
from memoryd.testing._crash import CrashChild as CrashChild
from memoryd.testing._forks import CrashServer as CrashServer
from memoryd.testing._registered import registered as registered
from memoryd.testing._remote import FakeRemote as FakeRemote
from memoryd.testing._remote import RemoteFault as RemoteFault
