"""Strict parser for YAML 1.2 files that records the line of every key and value.

It accepts one document of mappings, lists, text, numbers, true, false and null. It refuses anchors, aliases, tags,
duplicate keys, and files of more than 1 MB or 20 levels. A file can therefore neither grow in memory nor construct
objects.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.events import CollectionEndEvent as EndEvent
from ruamel.yaml.reader import ReaderError

from mplab.base.errors import InputError
from mplab.base.suggest import file_hint, show

SIZE_LIMIT_BYTES = 1_000_000
DEPTH_LIMIT = 20

KeyPath = tuple[str | int, ...]
"""Place in a file: ``("transports", 1, "mptcp")``."""

# YAML 1.2.2 §10.3.2, core schema. Infinities and unusual numbers (very long, octal, hexadecimal) stay text, which
# validation refuses.
_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True, order=True)
class Problem:
    """One problem in a file: file, line, path of the value, and text."""

    file: str
    line: int
    path: str
    text: str

    def render(self) -> str:
        """Return the problem as one line: ``experiments/x.yaml:12: transports[1]: unknown transport …``."""
        where = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}: {where}{self.text}"


@dataclass(frozen=True)
class Document:
    """One YAML file: its data as plain Python values, and the line of each value."""

    file: str
    """Name of the file as the user gave it."""
    source: bytes
    data: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)
    """Path → line (from 1) of the key, or of the item of a list."""
    problems: tuple[Problem, ...] = ()
    """Duplicate keys; `data` has the value of the first one."""
    files: dict[KeyPath, str] = field(default_factory=dict)
    """Path → file, for values that come from another file (``extends``)."""
    notes: dict[KeyPath, str] = field(default_factory=dict)
    """Path → source of the value, for messages (variables)."""

    def line(self, path: KeyPath) -> int:
        """Return the line of the value at `path`, or of its nearest parent with a known line."""
        return self.lines.get(self._nearest(path), 1)

    def file_of(self, path: KeyPath) -> str:
        """Return the file that gives the value at `path`: this one, or one that it extends."""
        return self.files.get(self._nearest(path), self.file)

    def place(self, path: KeyPath) -> str:
        """Return the place of the value at `path`, for messages: ``experiments/x.yaml:12: stop.interval``."""
        return f"{self.file_of(path)}:{self.line(path)}: {path_text(path)}"

    def problem(self, path: KeyPath, text: str, shown: KeyPath | None = None) -> Problem:
        """Return a problem of the value at `path`. The message names the path `shown`; None: `path`."""
        note = self.notes.get(self._nearest(path), "")
        full_text = f"{text} ({note})" if note else text
        return Problem(self.file_of(path), self.line(path), path_text(path if shown is None else shown), full_text)

    def _nearest(self, path: KeyPath) -> KeyPath:
        while path and path not in self.lines:
            path = path[:-1]
        return path

    def holds(self, path: KeyPath) -> bool:
        """Return whether the file has a key or an item at `path`."""
        return path in self.lines


def path_text(path: KeyPath) -> str:
    """Return a path in a file as text: ``transports[1].mptcp`` for ``("transports", 1, "mptcp")``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def load_yaml(path: Path) -> Document:
    """Return the YAML document in `path`.

    Raises:
        InputError: the file does not exist, is not a regular file, is too large, is not UTF-8, or is not in the subset
            of YAML that this module accepts.
    """
    return parse_yaml(_read(path), str(path))


def parse_yaml(source: bytes, file: str) -> Document:
    """Return the YAML document in `source`; `file` is its name in messages. Raises InputError."""
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        byte = source[error.start]
        raise InputError(f"{file}:{line}: not UTF-8 text (byte 0x{byte:02x}): save the file as UTF-8") from None
    builder = _Builder(file)
    try:
        for event in _events(text):
            builder.feed(event)
    except ReaderError as error:
        line = text.count("\n", 0, text.find(chr(error.character))) + 1
        raise InputError(f"{file}:{line}: control character U+{error.character:04X} in the text") from None
    except MarkedYAMLError as error:
        raise InputError(_explain(error, file, text)) from None
    except YAMLError as error:
        raise InputError(f"{file}:1: not YAML: {' '.join(str(error).split())}") from None
    if not builder.documents:
        raise InputError(f"{file}:1: the file is empty; see docs/experiment-files.md for what goes in")
    return Document(file, source, builder.data, builder.lines, tuple(builder.problems))


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a directory: name a file in it{_files_in(path)}")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: not a regular file")
        with path.open("rb") as file:
            source = file.read(SIZE_LIMIT_BYTES + 1)
    except FileNotFoundError:
        siblings = [sibling.name for sibling in path.parent.glob("*.yaml")] if path.parent.is_dir() else []
        raise InputError(f"{path}: no such file.{file_hint(path.name, siblings)}".removesuffix(".")) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: cannot be read: {reason}") from None
    if len(source) > SIZE_LIMIT_BYTES:
        raise InputError(f"{path}: larger than {SIZE_LIMIT_BYTES // 1_000_000} MB: not an mplab file")
    return source


def _files_in(path: Path) -> str:
    names = sorted(file.name for file in path.glob("*.yaml"))
    return f" ({', '.join(names)})" if names else ""


def _events(text: str) -> Iterator[Event]:
    yaml = YAML(typ="safe", pure=True)
    yield from yaml.parse(text)


def _explain(error: MarkedYAMLError, file: str, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    lines = text.splitlines()
    here = lines[line - 1] if line <= len(lines) else ""
    problem = error.problem or error.context or "not YAML"
    indentation = here[: len(here) - len(here.lstrip())]
    if "\t" in indentation:
        return f"{file}:{line}: a tab in the indentation: YAML allows only spaces"
    if "'\\t'" in problem:
        return f"{file}:{line}: a tab between words: use spaces"
    if error.context_mark and error.context_mark.line + 1 != line:
        problem += f" ({error.context}, which starts in line {error.context_mark.line + 1})"
    return f"{file}:{line}: not YAML: {' '.join(problem.split())}"


@dataclass
class _Open:
    """A mapping or list that the parser has started and not yet ended."""

    value: dict[str, Any] | list[Any]
    path: KeyPath
    key: str | None = None
    key_path: KeyPath = ()


class _Builder:
    """Builder of plain data from the events of the YAML parser.

    It does not recurse, and constructs no object that a file names.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.data: Any = None
        self.documents = 0
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self._open: list[_Open] = []

    def feed(self, event: Event) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise InputError(f"{self.file}:{line}: a second document ('---'): one file holds one")
        elif isinstance(event, EndEvent):
            self._open.pop()
        elif getattr(event, "anchor", None):
            mark = "*" if isinstance(event, AliasEvent) else "&"
            name = show(f"{mark}{getattr(event, 'anchor', None)}")
            raise InputError(f"{self.file}:{line}: {name}: anchors and aliases are not allowed: write the value out")
        elif tag := getattr(event, "tag", None):
            raise InputError(f"{self.file}:{line}: {show(tag)}: tags are not allowed: write only the value")
        elif isinstance(event, ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            value: dict[str, Any] | list[Any] = {} if isinstance(event, MappingStartEvent) else []
            path = self._add(value, line)
            self._open.append(_Open(value, path))
            if len(self._open) > DEPTH_LIMIT:
                raise InputError(f"{self.file}:{line}: more than {DEPTH_LIMIT} levels deep")

    def _scalar(self, event: ScalarEvent, line: int) -> None:
        if any("\ud800" <= character <= "\udfff" for character in event.value):
            raise InputError(f"{self.file}:{line}: {show(event.value)}: half of a surrogate pair is no character")
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._key(top, str(event.value), line)
        else:
            plain = event.implicit[0] and event.style is None
            self._add(_resolve(event.value) if plain else event.value, line)

    def _key(self, top: _Open, key: str, line: int) -> None:
        path = (*top.path, key)
        if path in self.lines:
            text = f"key {show(key)} is given twice (first in line {self.lines[path]})"
            self.problems.append(Problem(self.file, line, path_text(top.path), text))
            path = (
                *top.path,
                f"{key} (line {line})",
                len(self.problems),
            )  # a separate path for the values below the duplicate key
        else:
            self.lines[path] = line
        top.key, top.key_path = key, path

    def _add(self, value: Any, line: int) -> KeyPath:  # noqa: ANN401 - any YAML value
        if not self._open:
            self.data = value
            self.lines[()] = line
            return ()
        top = self._open[-1]
        if isinstance(top.value, list):
            path = (*top.path, len(top.value))
            top.value.append(value)
            self.lines[path] = line
            return path
        if top.key is None:
            kind = "a list" if isinstance(value, list) else "a mapping"
            raise InputError(f"{self.file}:{line}: {kind} as a key: a key is one word")
        top.value.setdefault(top.key, value)
        top.key = None
        return top.key_path


def _resolve(text: str) -> Any:  # noqa: ANN401 - a YAML scalar
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        return text[0] in "tT"
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text
