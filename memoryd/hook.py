"""The hook program: what a host runs at its events, as ``<absolute python> -I -S hook.py HOST EVENT``.

It parses nothing.  It ships what the host gives to the daemon in one frame (memoryd/wire/_hook.py has the format) and gives back the exit
code and the streams that the daemon says.  Standard library only, and of that what costs no import: it runs before every prompt.

- Before a compaction (a gate event) every failure ends in the host's own way to refuse; where no daemon answers, the gate runs in a
  process of its own first.  ``MEMORYD_GATE=off`` or ``warn`` lets a compaction pass that nobody could judge.
- At any other event a failure ends in exit code 0 and silence; the frame is appended to a file that memoryd takes in later.
"""

import _signal  # type: ignore[import-not-found]
import posix
import sys
import time

GATES = ("PreCompact", "PreCompress")
PASSED_ON = (
    b"HOME", b"XDG_CONFIG_HOME", b"XDG_DATA_HOME", b"XDG_STATE_HOME", b"MEMORYD_HOME", b"MEMORYD_PROFILE", b"MEMORYD_USER",
    b"MEMORYD_GATE", b"MEMORYD_PRIVATE", b"CLAUDE_PROJECT_DIR", b"CLAUDE_CODE_SKIP_PROMPT_HISTORY",
)  # fmt: skip
SETTINGS = (b"MEMORYD_CAPTURE_", b"MEMORYD_GATE_")  # of what an agent lets be recorded, and of its gate
TOLD = 0.22  # seconds for an event that is no gate, from the start of this file
GATED = 26.0  # seconds for a gate, inside the 30 that a host is told
ASKED = 14.0  # of those the daemon has these; a gate of its own has what is left
WAITED = 2.0  # a host that does not close our standard input has written its payload when nothing came for so long
LARGEST = 64 << 20
DEFAULT_PROFILE = b"/profiles/g6uo5qoodfuh2ezp4kifdxfgfh"
SPOOL_LIMIT = 256 << 20
QUIET = ((posix.POSIX_SPAWN_OPEN, 1, "/dev/null", posix.O_WRONLY, 0), (posix.POSIX_SPAWN_OPEN, 2, "/dev/null", posix.O_WRONLY, 0))


class Late(BaseException):
    """Time is up, or somebody ends this process."""


def late(number: int, frame: object) -> None:
    raise Late


def main() -> int:
    host, event = (*sys.argv[1:3], "", "")[:2]
    if event in GATES:
        return gate(host, event)
    return tell(host, event)


# -- events that are no gate -------------------------------------------------------------------------------------------------


def tell(host: str, event: str) -> int:
    frame = payload = b""
    try:
        _signal.signal(_signal.SIGTERM, late)
        _signal.signal(_signal.SIGALRM, late)
        payload = read_payload(TOLD / 2, TOLD)
        frame = packed(host, event, payload)
        write(1, ask(frame, TOLD)[1])
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    except BaseException:  # noqa: BLE001 - nothing of ours may disturb a host
        try:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            spool(frame, payload)
        except BaseException:  # noqa: BLE001 - the same
            pass
    return 0


def spool(frame: bytes, payload: bytes) -> None:
    """One append; what is cut off by a full disk is put aside when the file is read."""
    home = memoryd_home()
    if not frame or has_no_transcript(payload):
        return
    if may_be_kept_out(home, payload):
        return hand_over(frame)
    make_directory(home)
    file = posix.open(home + b"/hooks.spool", posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
    if posix.fstat(file).st_size < SPOOL_LIMIT:
        posix.write(file, frame + b"\n")
        if not posix.fstat(file).st_nlink:  # memoryd took the file in at this very moment
            spool(frame, payload)


def has_no_transcript(payload: bytes) -> bool:
    """Whether the host itself keeps nothing of the session: then memoryd keeps nothing either."""
    named = payload.partition(b'"transcript_path"')[2].lstrip(b" \t\r\n:")
    return bool(posix.environ.get(b"CLAUDE_CODE_SKIP_PROMPT_HISTORY")) or named.startswith(b"null")


def may_be_kept_out(home: bytes, payload: bytes) -> bool:
    """Whether the user keeps anything out of memory: then a process that can read the settings decides.  Rather too often than not."""
    settings = (home, home + DEFAULT_PROFILE, xdg(b"XDG_CONFIG_HOME", b"/.config") + b"/memoryd")
    if any(name.startswith((b"MEMORYD_PROFILE", b"MEMORYD_PRIVATE", b"MEMORYD_CAPTURE")) for name in posix.environ):
        return True
    if exists(home + b"/pauses.json") or any(map(has_words, settings)):
        return True
    named = payload.partition(b'"cwd"')[2].split(b'"', 2)[1:2]
    return any(b"\\" in place or is_ignored(place) for place in (directory(), posix.environ.get(b"CLAUDE_PROJECT_DIR", b""), *named))


def has_words(folder: bytes) -> bool:
    try:
        text = read_all(posix.open(folder + b"/memoryd.toml", posix.O_RDONLY))
    except OSError:
        return False
    return b"exclude" in text or b"private" in text


def is_ignored(path: bytes) -> bool:
    while path:
        if exists(path + b"/.memoryd-ignore"):
            return True
        path = path.rpartition(b"/")[0]
    return exists(b"/.memoryd-ignore")


def exists(path: bytes) -> bool:
    try:
        posix.lstat(path)
    except OSError:
        return False
    return True


def hand_over(frame: bytes) -> None:
    ours, theirs = posix.pipe()
    arguments = (sys.executable, "-I", "-m", "memoryd", "_spool")
    streams = ((posix.POSIX_SPAWN_DUP2, ours, 0), *QUIET)
    posix.posix_spawn(sys.executable, arguments, posix.environ, file_actions=streams, setpgroup=0)
    write(theirs, frame)


def make_directory(path: bytes) -> None:
    try:
        posix.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_directory(path[: path.rstrip(b"/").rindex(b"/")] or b"/")
        posix.mkdir(path, 0o700)


# -- the gate ----------------------------------------------------------------------------------------------------------------


def gate(host: str, event: str) -> int:
    started = time.monotonic()
    problem = "the hook could not run"
    try:
        _signal.signal(_signal.SIGTERM, late)
        _signal.signal(_signal.SIGALRM, late)
        frame = packed(host, event, read_payload(WAITED, GATED))
        said = asked_or_none(frame)
        if said is None:
            problem = "the gate could not be run; is memoryd still installed for the Python of this hook?"
            said = ask_child(frame, host, event, GATED - (time.monotonic() - started))
        write(1, said[1])
        write(2, said[2])
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        return said[0]
    except BaseException as error:  # noqa: BLE001 - the gate fails closed
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        return refuse(host, "no answer came in time" if isinstance(error, Late) else problem)


def asked_or_none(frame: bytes) -> "tuple[int, bytes, bytes] | None":
    try:
        return ask(frame, ASKED)
    except Exception:  # noqa: BLE001 - whatever it is, the gate of our own is next
        return None


def ask_child(frame: bytes, host: str, event: str, seconds: float) -> "tuple[int, bytes, bytes]":
    """The same gate in a process of its own: it needs the local disk only."""
    ours_in, to_child = posix.pipe()
    from_child, ours_out = posix.pipe()
    arguments = (sys.executable, "-I", "-m", "memoryd", "_gate", host, event, str(max(1.0, min(20.0, seconds - 3))))
    streams = ((posix.POSIX_SPAWN_DUP2, ours_in, 0), *QUIET, (posix.POSIX_SPAWN_DUP2, ours_out, 1))
    child = posix.posix_spawn(sys.executable, arguments, posix.environ, file_actions=streams)
    try:
        posix.close(ours_in)
        posix.close(ours_out)
        write(to_child, frame)
        posix.close(to_child)
        return parsed(read_all(from_child))  # it closes what it has opened by itself, and needs nobody to wait for that
    except BaseException:  # time is up, or its answer is none: no gate of ours goes on alone
        posix.kill(child, 9)
        posix.waitpid(child, 0)
        raise


def refuse(host: str, problem: str) -> int:
    """Each host has its own way, and takes any other one for a yes."""
    if posix.environ.get(b"MEMORYD_GATE", b"").strip().lower() in (b"off", b"warn"):
        return 0
    reason = (
        "BLOCKED_MISSING_PREREQUISITE: memoryd refuses this compaction, the transcript is not archived: " + problem + ". Nothing was "
        "lost; mend the cause ('memoryd doctor' names it) and compact again. Ways out: MEMORYD_GATE=warn or off in the environment of "
        "this program, or delete the hook of memoryd for this event from its settings."
    )
    try:
        if host == "codex":
            write(1, b'{"continue":false,"stopReason":"' + reason.encode() + b'"}')
            return 0
        write(2, reason.encode() + b"\n")
    except BaseException:  # noqa: BLE001 - the exit code says it too
        pass
    return 2


# -- the daemon --------------------------------------------------------------------------------------------------------------


def ask(frame: bytes, seconds: float) -> "tuple[int, bytes, bytes]":
    """(exit code, standard output, standard error) as the daemon says; raises whatever goes wrong."""
    import _socket

    end = time.monotonic() + seconds
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(seconds)
    connection.connect(socket_path())
    connection.sendall(frame)
    data = b""
    while len(data) < 5 or len(data) < 5 + int.from_bytes(data[1:5], "big"):
        connection.settimeout(max(0.001, end - time.monotonic()))
        more = connection.recv(65536)
        if not more or len(data) > LARGEST:
            raise EOFError
        data += more
    return parsed(data)


def parsed(data: bytes) -> "tuple[int, bytes, bytes]":
    body = data[5:]
    if data[:1] != b"R" or len(body) != int.from_bytes(data[1:5], "big"):
        raise ValueError
    out, rest = field(body[1:])
    error, rest = field(rest)
    if rest:
        raise ValueError
    return body[0], out, error


def field(data: bytes) -> "tuple[bytes, bytes]":
    end = 4 + int.from_bytes(data[:4], "big")
    if len(data) < max(4, end):
        raise ValueError
    return data[4:end], data[end:]


def packed(host: str, event: str, payload: bytes) -> bytes:
    names = [*PASSED_ON, *(name for name in posix.environ if name.startswith(SETTINGS))]
    environment = [name + b"=" + posix.environ[name] for name in names if posix.environ.get(name)]
    environment += [b"MEMORYD_TRANSCRIPT_BYTES=" + size for size in transcript_size(payload)]
    fields = [b"1", raw(host), raw(event), directory()]
    body = b"".join(map(sized, fields)) + len(environment).to_bytes(4, "big") + b"".join(map(sized, environment)) + sized(payload)
    return b"H" + sized(body)


def transcript_size(payload: bytes) -> "list[bytes]":
    """What the transcript has now, where that can be told: whoever reads the frame may do so much later."""
    named = payload.partition(b'"transcript_path"')[2].split(b'"', 2)[1:2]
    try:
        return [b"%d" % posix.stat(name).st_size for name in named if b"\\" not in name]
    except FileNotFoundError:
        return [b"0"]
    except (OSError, ValueError):
        return []


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# -- the world ---------------------------------------------------------------------------------------------------------------


def read_payload(seconds: float, whole: float) -> bytes:
    """Standard input, until its end or until nothing came for ``seconds``; then the alarm is set to what is left of ``whole``."""
    parts, started = [], time.monotonic()
    try:
        _signal.setitimer(_signal.ITIMER_REAL, seconds)
        while part := posix.read(0, 1 << 20):
            parts.append(part)
            _signal.setitimer(_signal.ITIMER_REAL, min(seconds, max(0.001, whole - (time.monotonic() - started))))
    except Late:
        if not parts:
            raise
    except OSError:
        pass
    _signal.setitimer(_signal.ITIMER_REAL, max(0.001, whole - (time.monotonic() - started)))
    return b"".join(parts)


def read_all(file: int) -> bytes:
    parts = []
    while part := posix.read(file, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def write(file: int, data: bytes) -> None:
    while data:
        data = data[posix.write(file, data) :]


def directory() -> bytes:
    try:
        return posix.getcwdb()
    except OSError:  # it was deleted
        return b""


def socket_path() -> bytes:
    """As memoryd.settings.resolve_socket."""
    given = posix.environ.get(b"MEMORYD_SOCKET")
    if given:
        return at_home(given)
    runtime = posix.environ.get(b"XDG_RUNTIME_DIR", b"")
    base = runtime if runtime.startswith(b"/") else xdg(b"XDG_STATE_HOME", b"/.local/state")
    return base + b"/memoryd/memoryd.sock"


def memoryd_home() -> bytes:
    """As memoryd.settings.resolve_home."""
    given = posix.environ.get(b"MEMORYD_HOME")
    return at_home(given) if given else xdg(b"XDG_DATA_HOME", b"/.local/share") + b"/memoryd"


def xdg(name: bytes, default: bytes) -> bytes:
    given = posix.environ.get(name, b"")
    return given if given.startswith(b"/") else posix.environ[b"HOME"] + default


def at_home(path: bytes) -> bytes:
    return posix.environ[b"HOME"] + path[1:] if path == b"~" or path.startswith(b"~/") else path


if __name__ == "__main__":
    posix._exit(main())
