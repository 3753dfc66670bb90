"""The parts of docs/reference that are drawn from the program.  ``python tests/architecture/reference.py`` writes them anew."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

import memoryd
from memoryd import errors, testing, wire
from memoryd.cli._group import root
from memoryd.core import config_keys
from memoryd.settings import default_toml
from memoryd.settings._files import variables

ROOT = Path(__file__).parents[2]
_BEGIN, _END = "<!-- drawn from the program -->", "<!-- end -->"


def config_table() -> str:
    """Every key, its variable, its default, what it accepts."""
    lines = ["| key | default | accepts | what | variable |", "|---|---|---|---|---|"]
    for key in config_keys():
        names = ", ".join(f"`{name}`" for name in variables(key))
        default = json.dumps(list(key.default) if isinstance(key.default, tuple) else key.default)
        lines.append(f"| `{key.path}` | `{default}` | {key.kind.expected} | {key.doc} | {names} |")
    return "\n".join(lines)


def error_table() -> str:
    """Every exception, what it is a kind of, whether trying again helps, what it means."""
    lines = ["| error | is a | retry helps | meaning |", "|---|---|---|---|"]
    for name in errors.__all__:
        found = getattr(errors, name)
        meaning = " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())
        lines.append(f"| `{name}` | `{found.__bases__[0].__name__}` | {'yes' if found.retryable else 'no'} | {_plain(meaning)} |")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A docstring's line as Markdown."""
    for role in ("class", "meth", "func", "mod"):
        text = text.replace(f":{role}:`~memoryd.", "`memoryd.").replace(f":{role}:`", "`")
    return text.replace("``", "`").replace("|", "\\|")


def command_sections() -> str:
    """The help of every command, as it is printed."""
    return "\n\n".join(f"## `{path}`\n\n```text\n{text}\n```" for path, text in commands())


def commands() -> Iterator[tuple[str, str]]:
    """Every command with its help text."""
    yield from _help("memoryd", root, None)


def _help(path: str, found: click.Command, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    name = path.rpartition(" ")[2]
    with click.Context(found, info_name=name, parent=parent, terminal_width=100, max_content_width=100) as context:
        yield path, found.get_help(context)
        if isinstance(found, click.Group):
            for inner in found.list_commands(context):
                command = found.get_command(context, inner)
                assert command is not None
                yield from _help(f"{path} {inner}", command, context)


def python_table() -> str:
    """The methods of a runtime: the same for trio, threads and asyncio."""
    lines = ["| method | what |", "|---|---|"]
    for name, method in vars(memoryd.Runtime).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        parameters = [str(p) for p in inspect.signature(method).parameters.values() if p.name != "self"]
        word = "await " if inspect.iscoroutinefunction(method) else ""
        first = " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())
        signature = f"{word}{name}({', '.join(parameters)})".replace("|", "\\|").replace("'", "")
        lines.append(f"| `{signature}` | {_plain(first)} |")
    return "\n".join(lines)


def testing_table() -> str:
    """What ``memoryd.testing`` has."""
    lines = ["| name | what |", "|---|---|"]
    for name in sorted(name for name in vars(testing) if not name.startswith("_") and name[0].isalpha()):
        found = getattr(testing, name)
        if not inspect.ismodule(found):
            lines.append(f"| `{name}` | {_plain(_summary(found))} |")
    return "\n".join(lines)


def _summary(found: object) -> str:
    if not inspect.isclass(found) and not inspect.isfunction(found):
        return str(found).replace("typing.", "")
    return " ".join((inspect.getdoc(found) or "").split("\n\n")[0].split())


def log_records() -> Iterator[tuple[str, str, str]]:
    """Every record that the program writes: its name, level and fields, found in the source."""
    for path in sorted([*(ROOT / "memoryd").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="debug" | "info" | "warning" | "error" as level), args=[ast.Constant(value=str(name))]
                ):
                    yield name, level, ", ".join(str(word.arg) for word in node.keywords)


def record_table() -> str:
    rows = sorted({f"| `{name}` | {level} | {fields} |" for name, level, fields in log_records()})
    return "\n".join(["| record | level | fields |", "|---|---|---|", *rows])


def metric_table() -> str:
    """What the daemon tells Prometheus."""
    from memoryd.daemon._metrics import METRICS

    lines = ["| metric | kind | labels beside `profile` | what |", "|---|---|---|---|"]
    for metric in METRICS:
        lines.append(f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |")
    return "\n".join(lines)


def hermes_table() -> str:
    """What a user sets for Hermes."""
    from memoryd_hermes._settings import FIELDS

    lines = ["| setting | default | what |", "|---|---|---|"]
    for field in FIELDS:
        where = f"`{field.env_key}` in `.env`" if field.kind == "secret" else f"`{json.dumps(field.default)}`"
        options = f" ({', '.join(field.options)})" if field.options else ""
        lines.append(f"| `{field.key}` | {where} | {field.doc}{options} |")
    return "\n".join(lines)


def wire_tables() -> str:
    """States, methods, values and errors of the daemon's protocol."""
    return "\n\n".join([*_wire_states(), *_wire_methods(), *_wire_values()])


def _wire_states() -> Iterator[str]:
    yield "## States"
    for side, steps in (("daemon", wire.SERVER), ("client", wire.CLIENT)):
        yield f"The {side}'s side; `<` comes in, `>` goes out. What a state does not list is an error."
        lines = ["| state | meaning | step -> state |", "|---|---|---|"]
        for state, following in steps.items():
            moves = ", ".join(f"`{step}` -> {new}" if new != state else f"`{step}`" for step, new in following.items())
            lines.append(f"| {state} | {wire.MEANING[state]} | {moves} |")
        yield "\n".join(lines)


def _wire_methods() -> Iterator[str]:
    yield "## Methods"
    yield "Those of `memoryd.Runtime`, where each is described, and the daemon's own. `?` may be left out. Seconds are the setting's default."
    lines = ["| method | parameters | result | answered | may be sent again | deadline |", "|---|---|---|---|---|---|"]
    for method in wire.METHODS.values():
        params = "; ".join(f"`{p.name}`{'' if p.required else '?'} {p.type}" for p in method.params)
        bound = f"`{method.deadline}` " if method.deadline == "timeout" else f"`deadlines.{method.deadline}` " if method.deadline else ""
        where = "in order" if method.quick else "when ready"
        lines.append(f"| `{method.name}` | {params} | {method.result} | {where} | {method.again} | {bound}{method.seconds:g} s |")
    yield "\n".join(lines)
    yield "Beside its own, the parameters of every method may hold:"
    yield "\n".join(["| parameter | what |", "|---|---|", *(f"| `{param.name}` | {param.type} |" for param in wire.COMMON)])


def _wire_values() -> Iterator[str]:
    yield "## Values"
    yield "What JSON has not is an object with one key that begins with `$`; a mapping of a caller with such a key travels as `$map`."
    yield "\n".join(["| key | value |", "|---|---|", *(f"| `{tag}` | {what} |" for tag, what in wire.TAGS.items())])
    yield "## Errors"
    yield (
        "`data` has the class (`type`), `retryable`, and what the class knows beside its message. The codes of JSON-RPC itself are used as "
        "there: -32700, -32600, -32601, -32602, and -32603 for a bug of the daemon."
    )
    yield "\n".join(["| code | error |", "|---|---|", *(f"| {code} | `{kind.__name__}` |" for code, kind in wire.CODES.items())])


DRAWN: Mapping[str, Callable[[], str]] = {
    "docs/reference/config.md": config_table,
    "docs/reference/errors.md": error_table,
    "docs/reference/cli.md": command_sections,
    "docs/reference/python.md": python_table,
    "docs/reference/records.md": record_table,
    "docs/howto/operate.md": metric_table,
    "docs/howto/hermes.md": hermes_table,
    "docs/reference/testing.md": testing_table,
    "docs/reference/wire.md": wire_tables,
}


def with_drawn_part(text: str, part: str) -> str:
    """``text`` with what stands between the two marks replaced."""
    head, found, rest = text.partition(_BEGIN)
    _, ended, tail = rest.partition(_END)
    assert found, f"the page needs the mark {_BEGIN}"
    assert ended, f"the page needs the mark {_END}"
    return f"{head}{_BEGIN}\n\n{part}\n\n{_END}{tail}"


def write() -> None:
    for name, draw in DRAWN.items():
        page = ROOT / name
        page.write_text(with_drawn_part(page.read_text("utf-8"), draw()), "utf-8")
    (ROOT / "config/memoryd.toml").write_text(default_toml(), "utf-8")


if __name__ == "__main__":
    write()
