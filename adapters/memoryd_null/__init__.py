"""The null backend: capture is off.  It takes nothing, finds nothing, and costs nothing; it is the baseline of every comparison."""

from memoryd_null._backend import NullBackend as NullBackend
from memoryd_null._backend import create as create
