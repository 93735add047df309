"""Variables of an experiment file: ``vars: {size: 10 MB}`` and ``${size}`` in values.

A value that is only ``${size}`` becomes the variable's value, of any type. Within longer text, ``${size}`` is replaced
by the variable's text or number. ``$${`` is an escaped ``${``. Variables are expanded once and must not refer to other
variables. The expanded values of a file together have the size limit of a file.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mplab.base.errors import InputError
from mplab.base.suggest import describe, unknown
from mplab.userfiles.strict.yaml import SIZE_LIMIT_BYTES, Document, KeyPath, Problem, load_yaml, parse_yaml

KEY = "vars"
GIVEN_FILE = "set.yaml"
"""File of a run directory with the variables that were set outside the file."""

_USE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")


def parse_given(texts: Sequence[str]) -> dict[str, object]:
    """Parse variables from a command line, each ``NAME=VALUE`` with a YAML value. Raises InputError."""
    variables: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value.strip():
            raise InputError(f"--set {text}: NAME=VALUE is needed, like 'size=10 MB'")
        if name in variables:
            raise InputError(f"--set {name}: is given twice")
        document = parse_yaml(value.encode(), f"--set {name}")
        if document.problems:
            raise InputError(document.problems[0].render())
        variables[name] = document.data
    return variables


def render_given(given: Mapping[str, object]) -> bytes:
    """Return the variables in the form that `read_given` reads: JSON, which is also YAML."""
    return (json.dumps(given, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_given(folder: Path) -> dict[str, object]:
    """Return the variables that a run directory keeps in `folder`; {}: it keeps none. Raises InputError."""
    path = folder / GIVEN_FILE
    if not path.is_file():
        return {}
    data = load_yaml(path).data
    if not isinstance(data, dict):
        raise InputError(f"{path}: found {describe(data)}: a mapping of variables is needed")
    return data


@dataclass(frozen=True)
class Filled:
    """A document with its variables expanded, and the value that was used for each variable, by name."""

    document: Document
    values: Mapping[str, object]


def fill(document: Document, layers: Sequence[Document], given: Mapping[str, object]) -> Filled:
    """Expand the variables of a document.

    Args:
        document: experiment file, merged with the files that it extends.
        layers: these files before they were merged. A variable counts as used if any of them uses it.
        given: values of variables from outside the file; they override those in the file.

    Raises:
        InputError: a variable is unknown or unused, or its value does not fit a text that refers to it. The message
            has one line for each problem.
    """
    own = document.data.get(KEY) if isinstance(document.data, Mapping) else None
    declared: Mapping[str, object] = own if isinstance(own, Mapping) else {}
    filler = _Filler(document, {**declared, **{name: given[name] for name in given if name in declared}}, given)
    data = filler.fill_all()
    problems = [*document.problems, *filler.problems, *_unfit(document, declared)]
    everywhere = {name for layer in layers for name in _names_in(_without_variables(layer.data))}
    for name in declared:
        if name not in everywhere:
            text = f"variable '{name}' is not used: write ${{{name}}} where it is meant, or leave it out"
            problems.append(document.problem((KEY, name), text))
    lines = [problem.render() for problem in sorted(problems, key=lambda one: (one.file != document.file, one))]
    for name in given:
        if name not in declared:
            lines.append(f"{document.file}: --set {name}: {unknown('variable', name, declared)}")
        elif name not in filler.used and name in everywhere:
            lines.append(f"{document.file}: --set {name}: what uses the variable is replaced by a file that extends it")
    if len(lines) > len(document.problems):
        raise InputError("\n".join(lines))
    expanded = replace(document, data=data, lines=filler.lines, files=filler.files, notes=filler.notes)
    return Filled(expanded, {name: filler.values[name] for name in declared})


def _unfit(document: Document, declared: Mapping[str, object]) -> Iterator[Problem]:
    """Yield a problem for each variable whose value refers to a variable, which is not allowed."""
    for name, value in declared.items():
        for inner in _names_in(value):
            yield document.problem((KEY, name), f"'${{{inner}}}' in a variable: variables hold no other ones")


def _names_in(value: object) -> Iterator[str]:
    """Yield the names of the variables to which a value refers, as ``${NAME}``."""
    if isinstance(value, str):
        yield from (match[2] for match in _USE.finditer(value) if match[1] is None)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _names_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names_in(item)


def _without_variables(data: object) -> object:
    return {key: value for key, value in data.items() if key != KEY} if isinstance(data, Mapping) else data


@dataclass
class _Filler:
    """Copier of a document's data that expands the variables in it."""

    document: Document
    values: Mapping[str, object]
    given: Mapping[str, object]
    problems: list[Problem] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    size: int = 0

    def __post_init__(self) -> None:
        self.lines, self.files = dict(self.document.lines), dict(self.document.files)
        self.notes = dict(self.document.notes)
        self._inner: dict[object, list[KeyPath]] = {}
        for path in self.lines:
            if len(path) > len((KEY, "name")) and path[0] == KEY:
                self._inner.setdefault(path[1], []).append(path)

    def fill_all(self) -> Any:  # noqa: ANN401 - any YAML value
        data = self.document.data
        if not isinstance(data, Mapping):
            return data
        return {key: value if key == KEY else self._fill(value, (key,)) for key, value in data.items()}

    def _fill(self, value: Any, path: KeyPath) -> Any:  # noqa: ANN401 - any YAML value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, Mapping):
            return {key: self._fill(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._fill(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def _text(self, text: str, path: KeyPath) -> Any:  # noqa: ANN401 - any YAML value
        use = _USE.fullmatch(text)
        if use is not None and use[1] is None:
            return self._whole(text, use[2], path)
        return _USE.sub(lambda match: "${" if match[1] else self._part(match[0], match[2], path), text)

    def _whole(self, text: str, name: str, path: KeyPath) -> Any:  # noqa: ANN401 - any YAML value
        if not self._known(name, path):
            return text
        value = self._sized(self.values[name], path)
        self._note(name, path)
        if name not in self.given:
            self._place_inner(name, path)
        return value

    def _part(self, text: str, name: str, path: KeyPath) -> str:
        if not self._known(name, path):
            return text
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            kind = "true or false" if isinstance(value, bool) else describe(value)
            self.problems.append(self.document.problem(path, f"variable '{name}' is {kind}: no part of a text"))
            return text
        self._note(name, path)
        return str(self._sized(value if isinstance(value, str) else json.dumps(value), path))

    def _known(self, name: str, path: KeyPath) -> bool:
        """Return whether the variable exists and has a value; otherwise add a problem."""
        self.used.add(name)
        if name not in self.values:
            self.problems.append(self.document.problem(path, unknown("variable", name, self.values)))
        elif self.values[name] is None:
            text = f"variable '{name}' has no value: give one, --set {name}=VALUE"
            self.problems.append(self.document.problem(path, text))
        else:
            return True
        return False

    def _note(self, name: str, path: KeyPath) -> None:
        """Record that the value at `path` comes from variable `name`, for messages about the value."""
        definition = (KEY, name)
        file, line = self.document.file_of(definition), self.document.line(definition)
        where = f"line {line}" if file == self.document.file_of(path) else f"{file}:{line}"
        note = f"${{{name}}} is " + ("from --set" if name in self.given else f"in {where}")
        self.notes[path] = f"{self.notes[path]}, {note}" if path in self.notes else note

    def _place_inner(self, name: str, path: KeyPath) -> None:
        """Record file and line of each value inside variable `name`, for messages about their copies below `path`."""
        for inner in self._inner.get(name, ()):
            target = (*path, *inner[2:])
            self.lines[target] = self.document.line(inner)
            if (file := self.document.file_of(inner)) != self.document.file:
                self.files[target] = file

    def _sized(self, value: Any, path: KeyPath) -> Any:  # noqa: ANN401 - any YAML value
        self.size += len(json.dumps(value))
        if self.size > SIZE_LIMIT_BYTES:
            text = f"with its variables larger than {SIZE_LIMIT_BYTES // 1_000_000} MB: not an mplab file"
            raise InputError(self.document.problem(path, text).render())
        return value
