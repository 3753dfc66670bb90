"""The protocol between clients and the daemon, without I/O: bytes in, events out.  docs/reference/wire.md is drawn from its tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.wire._client import Answer as Answer
    from memoryd.wire._client import Caller as Caller
    from memoryd.wire._client import Progress as Progress
    from memoryd.wire._coding import dump as dump
    from memoryd.wire._coding import load as load
    from memoryd.wire._coding import make_record as make_record
    from memoryd.wire._config import config_fingerprint as config_fingerprint
    from memoryd.wire._faults import CODES as CODES
    from memoryd.wire._faults import decode_error as decode_error
    from memoryd.wire._faults import encode_error as encode_error
    from memoryd.wire._hook import HookCall as HookCall
    from memoryd.wire._hook import HookCallReader as HookCallReader
    from memoryd.wire._hook import HookReply as HookReply
    from memoryd.wire._hook import HookReplyReader as HookReplyReader
    from memoryd.wire._lines import MAX_FRAME as MAX_FRAME
    from memoryd.wire._lines import Lines as Lines
    from memoryd.wire._methods import COMMON as COMMON
    from memoryd.wire._methods import METHODS as METHODS
    from memoryd.wire._methods import SCOPE_FIELDS as SCOPE_FIELDS
    from memoryd.wire._methods import Method as Method
    from memoryd.wire._methods import Param as Param
    from memoryd.wire._server import MAX_IN_FLIGHT as MAX_IN_FLIGHT
    from memoryd.wire._server import Call as Call
    from memoryd.wire._server import Connection as Connection
    from memoryd.wire._server import Ended as Ended
    from memoryd.wire._server import Event as Event
    from memoryd.wire._server import Greeting as Greeting
    from memoryd.wire._server import Rejected as Rejected
    from memoryd.wire._states import CLIENT as CLIENT
    from memoryd.wire._states import MEANING as MEANING
    from memoryd.wire._states import SERVER as SERVER
    from memoryd.wire._values import TAGS as TAGS
    from memoryd.wire._values import Odd as Odd
    from memoryd.wire._values import pack as pack
    from memoryd.wire._values import unpack as unpack
    from memoryd.wire._version import PROTOCOL as PROTOCOL
    from memoryd.wire._version import SPOKEN as SPOKEN
    from memoryd.wire._version import Welcome as Welcome
    from memoryd.wire._version import common_version as common_version

_HOMES = {
    "Answer": "_client",
    "Caller": "_client",
    "Progress": "_client",
    "dump": "_coding",
    "load": "_coding",
    "make_record": "_coding",
    "config_fingerprint": "_config",
    "CODES": "_faults",
    "decode_error": "_faults",
    "encode_error": "_faults",
    "HookCall": "_hook",
    "HookCallReader": "_hook",
    "HookReply": "_hook",
    "HookReplyReader": "_hook",
    "MAX_FRAME": "_lines",
    "Lines": "_lines",
    "COMMON": "_methods",
    "METHODS": "_methods",
    "Method": "_methods",
    "Param": "_methods",
    "SCOPE_FIELDS": "_methods",
    "Call": "_server",
    "Connection": "_server",
    "Ended": "_server",
    "Event": "_server",
    "Greeting": "_server",
    "MAX_IN_FLIGHT": "_server",
    "Rejected": "_server",
    "CLIENT": "_states",
    "MEANING": "_states",
    "SERVER": "_states",
    "TAGS": "_values",
    "Odd": "_values",
    "pack": "_values",
    "unpack": "_values",
    "PROTOCOL": "_version",
    "SPOKEN": "_version",
    "Welcome": "_version",
    "common_version": "_version",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.wire' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.wire.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
