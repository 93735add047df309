"""Make the report of a bundle again from its raw data, and compare it byte for byte with the one in the bundle."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl

from mplab.analysis.bundle import checksums
from mplab.analysis.bundle.contents import contents
from mplab.analysis.bundle.read import Bundle
from mplab.analysis.files import Json
from mplab.analysis.pipeline import Listener, analyze
from mplab.analysis.record.run import read_run

Deviation: TypeAlias = Literal["differs", "not made", "new"]
_MOST_CHARACTERS = 60
"""Maximum number of characters that are quoted of each of two different values."""

_BEFORE = 20
_OF_ANALYSIS = (
    "mplab",
    "python",
    "mptrace",
    "numpy",
    "scipy",
    "polars",
    "matplotlib",
    "jinja2",
    "pydantic",
    "pillow",
    "lxml",
    "pesqc2",
)
"""Names in a manifest's ``versions`` that a report can depend on."""


@dataclass(frozen=True)
class FileDifference:
    """A derived file that is not identical to the original; ``how`` describes the first difference, or is ""."""

    name: str
    deviation: Deviation
    how: str = ""


@dataclass(frozen=True)
class Rebuilt:
    """Result of a rebuild; ``same`` counts the files that are identical byte for byte."""

    same: int
    differences: tuple[FileDifference, ...]
    versions: tuple[tuple[str, str, str], ...]
    """(name, version then, version now) of each part of the analysis whose version has changed since the run."""


def rebuild(
    bundle: Bundle,
    *,
    versions: Mapping[str, str] | None = None,
    progress: Listener | None = None,
) -> Rebuilt:
    """Analyse the raw data of an unpacked bundle in place, and compare the results with the bundle's derived files.

    Args:
        bundle: see `mplab.analysis.bundle.read.open_bundle`.
        versions: name → version in this installation, for names in a manifest's ``versions`` and for ``commit`` (the
            commit of the source tree). These versions are compared with the manifest's; a missing name is not compared.
        progress: see `mplab.analysis.pipeline.analyze`.

    Raises:
        As `mplab.analysis.pipeline.analyze`.
    """
    root = bundle.run.directory
    analyze(root, progress=progress)
    digests = checksums.digests(root, contents(read_run(root)).derived)
    differences = [
        FileDifference(
            name, "not made" if name not in digests else "new" if name not in bundle.derived else "differs", how
        )
        for name in sorted({**bundle.derived, **digests})
        if digests.get(name) != bundle.derived.get(name)
        for how in [_how(bundle.before / name, root / name)]
    ]
    same = sum(digests.get(name) == sha for name, sha in bundle.derived.items())
    return Rebuilt(same, tuple(differences), tuple(_other_versions(bundle, versions or {})))


def _other_versions(bundle: Bundle, now: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    manifest = bundle.run.manifest
    then = {name.lower(): str(version) for name, version in manifest.versions.items()}
    here = {name.lower(): version for name, version in now.items()}
    for name in _OF_ANALYSIS:
        old, new = then.get(name, ""), here.get(name, "")
        if name in here and old != new:
            yield name, old, new
    commit = manifest.git.commit or ""
    commit += " with local changes" if commit and manifest.git.dirty else ""
    if "commit" in here and here["commit"] != commit:
        yield "commit", commit, here["commit"]


def _how(before: Path, after: Path) -> str:
    """Return a description of the first difference between two files; "" when one is missing."""
    if not (before.is_file() and after.is_file()):
        return ""
    if before.suffix == ".parquet":
        return _of_tables(before, after)
    old, new = before.read_bytes(), after.read_bytes()
    if before.suffix == ".json":
        try:
            return _of_json(json.loads(old), json.loads(new))
        except ValueError:
            pass
    return _of_text(old.decode(errors="replace"), new.decode(errors="replace"))


def _of_tables(before: Path, after: Path) -> str:
    try:
        old, new = pl.read_parquet(before), pl.read_parquet(after)
    except (pl.exceptions.PolarsError, OSError):
        return "one of them cannot be read"
    if old.schema != new.schema:
        return "other columns"
    return "the same rows, in other bytes" if old.equals(new) else f"{old.height} rows, now {new.height}"


def _of_json(old: Json, new: Json) -> str:
    first = next(_parting(old, new, ""), None)
    return (
        f"{first[0] or 'all of it'}: {_short(first[1])}, now {_short(first[2])}"
        if first
        else "the same values, in other bytes"
    )


def _parting(old: Json, new: Json, place: str) -> Iterator[tuple[str, object, object]]:
    """Yield (path of keys, old value, new value) of every difference between two JSON documents."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            yield from _parting(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from _parting(old_item, new_item, f"{place}[{number}]")
    elif old != new:
        yield place, old, new


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _of_text(old: str, new: str) -> str:
    for number, (old_line, new_line) in enumerate(zip_longest(old.splitlines(), new.splitlines()), 1):
        if old_line != new_line:
            start = max(0, _common(old_line or "", new_line or "") - _BEFORE)
            return f"line {number}: {_cut(old_line, start)}, now {_cut(new_line, start)}"
    return "other line ends"


def _cut(line: str | None, start: int) -> str:
    if line is None:
        return "the end"
    part = line[start : start + _MOST_CHARACTERS]
    return f"'{'…' if start else ''}{part}{'…' if start + _MOST_CHARACTERS < len(line) else ''}'"


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two lines."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
