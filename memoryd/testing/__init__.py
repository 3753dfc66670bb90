"""Tools for tests of memoryd and of what is built on it: public, and free of pytest."""

from memoryd.store import Fault as Fault
from memoryd.store import FaultyVFS as FaultyVFS
from memoryd.testing._crash import ChildFailed as ChildFailed
from memoryd.testing._crash import CrashChild as CrashChild
