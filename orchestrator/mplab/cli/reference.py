"""Write the generated pages of the manual, docs/reference/: commands, keys of files, scenarios, tables of results.

``python -m mplab.cli.reference [FOLDER]`` writes all of them. A test compares them with the code.
"""

import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperArgument, TyperGroup

from mplab.analysis.results.columns import markdown
from mplab.analysis.scores import changes, traced
from mplab.base.places import ROOT
from mplab.cli.command import name_value
from mplab.cli.main import app
from mplab.cli.output import duration
from mplab.cli.schema import campaign_schema, experiment_schema, lab_schema, link_schema, paper_schema
from mplab.cli.verbs.parts.scenarios import describe_all
from mplab.format.units import quantity_of
from mplab.userfiles.links.link import InlineLinkFile

DIRECTORY = ROOT / "docs" / "reference"
Schema = Mapping[str, Any]
"""A JSON Schema, or a part of one, as parsed JSON."""

_MADE = "<!-- Made by `python -m mplab.cli.reference` from the code: change the code, not this page. -->"
_TYPES = {"integer": "whole number", "number": "number", "boolean": "`true` or `false`", "string": "text"}
_PATTERNS = {"^[a-z0-9-]{1,40}$": "name", "^([01][0-9]|2[0-3]):[0-5][0-9]$": "time of day"}
_VARIABLE = "#/$defs/Variable"
_FILES = {
    "experiment-file": (
        "Keys of an experiment file",
        "[Experiment files](../experiment-files.md) explains them, with examples. Keys that are required can also be "
        "[inherited](../experiment-files.md#one-file-on-top-of-another), except `mplab` and `name`. Values can be "
        "[variables](../experiment-files.md#variables).",
        experiment_schema,
    ),
    "link-file": (
        "Keys of a link condition",
        "[Link conditions](../links.md) explains them, with examples. Keys that are required can also be "
        "[inherited](../links.md#one-condition-on-top-of-another) or [swept](../links.md#sweeps).",
        link_schema,
    ),
    "lab-file": (
        "Keys of a lab file",
        "[Routers](../routers.md), [phones](../phones.md) and [proxy](../proxy.md) explain them, with examples. The "
        "key `driver` of a phone determines which of the other keys it has.",
        lab_schema,
    ),
    "campaign-file": (
        "Keys of a campaign file",
        "[Campaigns](../campaigns.md) explains them, with examples.",
        campaign_schema,
    ),
    "paper-file": (
        "Keys of a paper of the catalogue",
        "[The papers again](../papers-again.md) explains them.",
        paper_schema,
    ),
}


def pages() -> dict[str, str]:
    """Return file name → content of the generated pages."""
    files = {f"{name}.md": _file_page(*about) for name, about in _FILES.items()}
    return {"commands.md": _commands(), "scenarios.md": _scenarios(), "result-tables.md": _result_tables(), **files}


def write_pages(directory: Path = DIRECTORY) -> None:
    """Write `pages` to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, encoding="utf-8")


def _page(title: str, intro: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# {title}", "", _MADE, "", *_wrapped(intro), *lines]) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _text(value: object) -> str:
    """Return a value as in a YAML file."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_text(entry)}" for key, entry in value.items() if entry is not None) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _default(value: object) -> str:
    return "none" if value in (None, "", {}, []) or _text(value) == "{}" else f"`{_text(value)}`"


# --- The command line ----------------------------------------------------------------------------------------


def _commands() -> str:
    program = typer.main.get_command(app)
    intro = "`mplab VERB --help` prints the same. Options of `mplab` itself precede the verb."
    lines = [*_command(program, ("mplab",))]
    return _page("Command line", intro, lines)


def _command(verb: Any, path: tuple[str, ...]) -> Iterator[str]:  # noqa: ANN401 - a class of typer's click
    context = verb.make_context(path[-1], [], resilient_parsing=True)  # imports the module of the verb
    command = context.command
    for parameter in command.params:
        name_value(parameter)
    yield ""
    yield f"{'#' * (3 if len(path) > 2 else 2)} {' '.join(path)}"
    yield ""
    yield from _wrapped(command.help or "")
    if isinstance(command, TyperGroup):
        yield from _parameters(command)
        yield ""
        verbs = sorted(name for name, verb in command.commands.items() if not verb.hidden)
        yield from _wrapped(f"Verbs: {', '.join(f'`{name}`' for name in verbs)}.")
        if command.epilog:
            yield ""
            yield from _wrapped(command.epilog)
        for name in verbs:
            yield from _command(command.commands[name], (*path, name))
    else:
        arguments = [parameter for parameter in command.params if isinstance(parameter, TyperArgument)]
        words = [*path, *(["[OPTIONS]"] if len(arguments) < len(command.params) else []), *map(_argument, arguments)]
        yield from ("", "```text", " ".join(words), "```")
        yield from _parameters(command)


def _wrapped(text: str) -> list[str]:
    """Return paragraphs in lines of at most 120 columns; do not wrap lines that start with a space."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        indented = any(line.startswith(" ") for line in paragraph.splitlines())
        lines += ["", *(paragraph.splitlines() if indented else textwrap.wrap(paragraph, 120, break_on_hyphens=False))]
    return lines[1:]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _argument(parameter: TyperArgument) -> str:
    name = f"{parameter.metavar}{'…' if parameter.nargs == -1 else ''}"
    return name if parameter.required else f"[{name}]"


def _parameters(command: Any) -> Iterator[str]:  # noqa: ANN401
    rows = [_parameter(parameter) for parameter in command.params if not parameter.hidden]
    if rows:
        yield from _table(("argument or option", "default", "meaning"), rows)


def _parameter(parameter: Any) -> tuple[str, str, str]:  # noqa: ANN401
    about = _one_line(parameter.help or "")
    if isinstance(parameter, TyperArgument):
        return f"`{_argument(parameter)}`", "", about
    names = [*parameter.opts, *parameter.secondary_opts]
    if not parameter.is_flag:
        names[0] += f" {parameter.metavar}"
    default = parameter.default
    shown = "" if default in (None, False, "", ...) or callable(default) else f"`{_text(default)}`"
    variable = f" Environment variable: `{parameter.envvar}`." if parameter.envvar else ""
    return ", ".join(f"`{name}`" for name in names), shown, about + variable


# --- Files ---------------------------------------------------------------------------------------------------


def _file_page(title: str, intro: str, make: Callable[[], Schema]) -> str:
    schema = make()
    return _page(title, intro, _Sections(schema.get("$defs", {})).lines(schema))


class _Sections:
    """Sections of a page: one table for each mapping of a file, the root first."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._titles: dict[str, str] = {}
        self._needed: dict[str, set[str]] = {}
        self._waiting: list[tuple[str, Schema]] = []

    def lines(self, schema: Schema) -> Iterator[str]:
        """Yield the lines of all sections."""
        yield from self._section("", schema)
        while self._waiting:
            path, inner = self._waiting.pop(0)
            yield ""
            yield f"## `{path}`"
            if about := inner.get("description", "").replace("``", "`"):
                yield ""
                yield from _wrapped(about)
            yield from self._section(path, inner)

    def _section(self, path: str, schema: Schema) -> Iterator[str]:
        then = schema.get("then", {})  # keys that a file needs unless it inherits them
        for key, entry in then.get("properties", {}).items():
            self._needed[f"{path}.{key}" if path else key] = set(entry["required"])
        required = {*schema.get("required", ()), *then.get("required", ()), *self._needed.get(path, ())}
        rows = []
        for key, entry in schema["properties"].items():
            kind = self._kind(entry, f"{path}.{key}" if path else key)
            default = "required" if key in required and "default" not in entry else _default(entry.get("default"))
            rows.append((f"`{key}`", kind, default, _one_line(entry.get("description", ""))))
        yield from _table(("key", "type", "default", "meaning"), rows)

    def _kind(self, entry: Schema, path: str) -> str:
        choices = (*entry.get("anyOf", ()), *entry.get("oneOf", ()))
        if choices:
            kinds = [
                self._kind(choice, path)
                for choice in choices
                if choice.get("type") != "null" and choice.get("$ref") != _VARIABLE
            ]
            return " or ".join(dict.fromkeys(kinds))
        if "$ref" in entry:
            return self._mapping(entry["$ref"].rpartition("/")[2], path)
        if "const" in entry or "enum" in entry:
            return ", ".join(f"`{_text(value)}`" for value in entry.get("enum", (entry.get("const"),)))
        return self._simple(entry, path)

    def _simple(self, entry: Schema, path: str) -> str:
        kind = entry.get("type")
        if kind == "array":
            bounds = _bounds(entry, "minItems", "maxItems").removeprefix(", ")
            inner = self._kind(entry["items"], path)
            return f"list of {inner}" + (f" ({bounds})" if bounds else "")
        if "properties" in entry:
            return self._inline(entry, path)
        if kind == "object":
            values = [*entry.get("patternProperties", {}).values(), entry.get("additionalProperties")]
            value = next((value for value in values if isinstance(value, Mapping) and value), None)
            inner = self._kind(value, f"{path}.NAME") if value else ""
            return f"name → {inner}" if inner else "mapping"
        if kind == "string":
            quantity = quantity_of(entry.get("pattern", ""))
            examples = " or ".join(f"`{example}`" for example in entry.get("examples", ())[:2])
            named = quantity.kind if quantity else _PATTERNS.get(entry.get("pattern", ""), "")
            return named or (f"text like {examples}" if examples else "text")
        return f"{_TYPES.get(str(kind), 'any value')}{_bounds(entry, 'minimum', 'maximum')}"

    def _inline(self, entry: Schema, path: str) -> str:
        if set(entry["properties"]) == {"label"}:
            return "options and `label`"
        if path not in self._titles:
            self._titles[path] = path
            self._waiting.append((path, entry))
        return self._link(path)

    def _mapping(self, name: str, path: str) -> str:
        if name == InlineLinkFile.__name__:
            return "[link condition](link-file.md) with a `name`"
        if name not in self._titles:
            schema = self._definitions[name]
            if "properties" not in schema:
                return self._kind(schema, path)
            driver = schema["properties"].get("driver", {})
            path = f"{path} ({driver['const']})" if "const" in driver else path
            self._titles[name] = path
            self._waiting.append((path, schema))
        return self._link(self._titles[name])

    @staticmethod
    def _link(path: str) -> str:
        return f"[`{path}`](#{re.sub(r'[^a-z0-9_ -]', '', path.lower()).replace(' ', '-')})"


def _bounds(entry: Schema, low: str, high: str) -> str:
    least, most = entry.get(low), entry.get(high)
    if least is not None and most is not None:
        return f", {least} to {most}"
    if most is not None:
        return f", at most {most}"
    return f", at least {least}" if least is not None else ""


# --- Scenarios -----------------------------------------------------------------------------------------------


def _scenarios() -> str:
    intro = (
        "`mplab scenarios` prints them. [App scenarios](../scenarios.md) explains how a scenario works; the link in "
        "each section leads to its page."
    )
    return _page("Scenarios, parameters and metrics", intro, _scenario_lines())


def _scenario_lines() -> Iterator[str]:
    for scenario in describe_all():
        name = scenario["name"]
        folder = f"../../ui-scenarios/mplab/scenarios/{name.replace('-', '_')}/README.md"
        limit = "depends on its parameters" if (seconds := scenario["time_limit_s"]) is None else duration(seconds)
        about = f"[{scenario['title']}]({folder}). Longest duration with the defaults: {limit}."
        yield from ("", f"## {name}", "", *_wrapped(about))
        rows = (
            (
                f"`{parameter['name']}`",
                parameter["type"] + (f", {parameter['allowed']}" if parameter["allowed"] else ""),
                _default(parameter["default"]),
                _one_line(parameter["description"]),
            )
            for parameter in scenario["parameters"]
        )
        yield from _table(("parameter", "type", "default", "meaning"), rows)
        yield from _table(_METRIC, map(_metric, scenario["metrics"]))
    for title, about, metrics in (
        ("Hand-overs", "Metrics of every scenario, in cells whose link condition changes.", changes.METRICS),
        (
            "Traces",
            "Metrics of every scenario, from the captures; the report shows them in a folded table. [Claims]"
            "(../claims.md) and budgets can name them.",
            traced.METRICS,
        ),
    ):
        yield from ("", f"## {title}", "", *_wrapped(about))
        yield from _table(_METRIC, (_metric(dataclasses.asdict(metric)) for metric in metrics))


_METRIC = ("metric", "meaning", "unit", "better", "labels", "source")


def _metric(metric: Mapping[str, Any]) -> tuple[str, ...]:
    name = f"**`{metric['name']}`**" if metric["headline"] else f"`{metric['name']}`"
    labels = ", ".join(f"`{label}`" for label in metric["labels"])
    return name, metric["title"], metric["unit"], metric["better"], labels, metric["source"]


def _result_tables() -> str:
    intro = "`mplab results query` reads these tables; [results of many runs](../results.md) explains them."
    return _page("Tables of results", intro, ["", *markdown().rstrip().splitlines()])


if __name__ == "__main__":
    write_pages(*(Path(argument) for argument in sys.argv[1:2]))
