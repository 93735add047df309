"""Experiment files that extend others, read as one document in which every value keeps its file and line.

A run directory keeps the extended files: ``experiment/1-NAME.yaml`` is the file that the experiment file extends,
``experiment/2-NAME.yaml`` the file that this one extends, and so on. The run's experiment is read only with these
files, independent of the location of the run directory and of the paths in the files.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mplab.base.errors import InputError
from mplab.base.suggest import describe, file_hint
from mplab.format.names import parse_format
from mplab.userfiles.experiments.experiment import FORMAT, ParentFile
from mplab.userfiles.experiments.variables import GIVEN_FILE, render_given
from mplab.userfiles.strict.check import check_kind
from mplab.userfiles.strict.inherit import merge
from mplab.userfiles.strict.yaml import Document, KeyPath, load_yaml

_OWN = ("mplab", "name", "title", "extends")
"""Keys that are not inherited."""

_MOST = 20
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


def read_layers(path: Path, kept: Path | None = None) -> list[Document]:
    """Return the document in `path`, the document that it extends, the document that this one extends, and so on.

    Args:
        path: path of an experiment file.
        kept: folder with the numbered copies of the extended files; None: the paths in the files are used.

    Raises:
        InputError: a file is missing or cannot be read, or files extend each other in a circle.
    """
    documents = [load_yaml(path)]
    check_kind(documents[0], "experiment")
    chain = [path]
    while (name := _extended(documents[-1])) is not None:
        try:
            parent = _kept(kept, len(documents)) if kept is not None else _parent(chain, name)
        except InputError as error:
            raise InputError(documents[-1].problem(("extends",), str(error)).render()) from None
        document = load_yaml(parent)
        check_kind(document, "experiment")
        _check_parent(document)
        documents.append(document)
        chain.append(parent)
    return documents


def _extended(document: Document) -> str | None:
    """Return the value of ``extends`` of a document; None: it has no such key. Raises InputError: it is wrong."""
    if not isinstance(document.data, Mapping) or "extends" not in document.data:
        return None
    value = document.data["extends"]
    if not isinstance(value, str) or not value:
        text = f"found {describe(value)}: the path of one experiment file is needed, relative to this one"
        raise InputError(document.problem(("extends",), text).render())
    return value


def _parent(chain: Sequence[Path], name: str) -> Path:
    """Return the path of the file that the last file of `chain` extends, by the path `name` that this last file gives.

    Raises:
        InputError: there is no such file, or the chain is a circle or too long; the message has no file and line.
    """
    joined = chain[-1].parent / Path(name).expanduser()
    short = Path(os.path.normpath(joined))
    path = short if short.resolve() == joined.resolve() else joined
    before = [earlier.resolve() for earlier in chain]
    if path.resolve() in before:
        circle = [earlier.name for earlier in chain[before.index(path.resolve()) :]]
        raise InputError(f"'{name}' extends itself: {' → '.join((*circle, path.name))}")
    if len(chain) > _MOST:
        raise InputError(f"more than {_MOST} files extend each other")
    if not path.is_file():
        siblings = sorted(earlier.name for earlier in path.parent.glob("*.yaml") if earlier.resolve() not in before)
        raise InputError(_no_file(name, path, siblings))
    return path


def _no_file(name: str, path: Path, siblings: Sequence[str]) -> str:
    hint = file_hint(path.name, siblings)
    return f"'{name}': no such file: {path}.{hint} Allowed: the path of an experiment file, relative to this one"


def _kept(folder: Path, number: int) -> Path:
    """Return the path of a run's copy of the extended file with this number.

    Raises:
        InputError: there is no such copy, or there are several; the message has no file and line.
    """
    copies = sorted(folder.glob(f"{number}-*.yaml"))
    if len(copies) != 1:
        raise InputError(f"{folder}: the file that was extended is not there: one '{number}-….yaml' is needed")
    return copies[0]


def _check_parent(document: Document) -> None:
    """Check that an extended file is a mapping and has a known format number. Raises InputError."""
    if not isinstance(document.data, Mapping):
        text = f"found {describe(document.data)}: the keys of an experiment file are needed"
        raise InputError(document.problem((), text).render())
    if "mplab" not in document.data:
        raise InputError(document.problem((), "key 'mplab' is missing").render())
    try:
        parse_format(document.data["mplab"], "mplab", FORMAT)
    except ValueError as error:
        raise InputError(document.problem(("mplab",), str(error)).render()) from None


def parents_of(layers: Sequence[Document], *, kept: bool) -> tuple[ParentFile, ...]:
    """Return all documents but the first as extended files.

    With `kept`, the documents are a run's numbered copies; the numbers are removed from their names.
    """
    names = [Path(layer.file).name for layer in layers[1:]]
    plain = [name.partition("-")[2] for name in names] if kept else names
    return tuple(ParentFile(name, layer.source) for name, layer in zip(plain, layers[1:], strict=True))


def kept_files(parents: Sequence[ParentFile], given: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that a run directory keeps with the experiment file, by name: extended files and variables."""
    files = {f"{number}-{_plain(parent.name)}.yaml": parent.source for number, parent in enumerate(parents, 1)}
    return {**files, **({GIVEN_FILE: render_given(given)} if given else {})}


def _plain(name: str) -> str:
    return _PLAIN.sub("_", name).removesuffix(".yaml").removesuffix(".yml")


def merged(layers: Sequence[Document]) -> Document:
    """Return one document: each document merged over the next, which it extends.

    Mappings are merged key by key; lists and other values are replaced.
    """
    *over, document = layers
    for own in reversed(over):
        if isinstance(own.data, Mapping):
            document = _on_top(own, document)
    return document


def _on_top(own: Document, base: Document) -> Document:
    inherited = {key: value for key, value in base.data.items() if key not in _OWN}
    lines, files = dict(own.lines), dict(own.files)
    for path, line in base.lines.items():
        if path and path[0] in inherited and _from_base(own.data, inherited, path):
            lines[path], files[path] = line, base.file_of(path)
    problems = (*own.problems, *base.problems)
    return replace(own, data=merge(inherited, own.data), lines=lines, files=files, problems=problems)


def _from_base(own: Any, base: Any, path: KeyPath) -> bool:  # noqa: ANN401 - YAML values
    """Return whether the value at `path` of the merged data comes from `base`, because `own` does not replace it."""
    for part in path:
        if not isinstance(own, Mapping) or not isinstance(base, Mapping):
            return False
        if part not in own:
            return True
        own, base = own[part], base.get(part)
    return False
