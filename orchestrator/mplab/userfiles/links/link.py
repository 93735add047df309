"""Link conditions as written: the paths over WiFi and LTE, and their changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from mplab.base.errors import InputError
from mplab.base.suggest import describe, unknown
from mplab.format.direction import UNLIMITED, WAYS
from mplab.format.link import LinkCondition
from mplab.format.names import FileModel, Name, is_name, parse_name
from mplab.format.trace import TRACES_FOLDER, Trace, is_trace_name
from mplab.format.units import DurationMs
from mplab.userfiles.links.changes import ChangeFile, spread
from mplab.userfiles.links.pathfile import PathFile
from mplab.userfiles.links.sweep import SweepFile, Variant, variants
from mplab.userfiles.strict.check import Checker, check_kind
from mplab.userfiles.strict.inherit import PATHS, inherit
from mplab.userfiles.strict.yaml import Document, KeyPath, load_yaml


class LinkFile(FileModel):
    """Link condition as written in ``router-configs/links/<name>.yaml``."""

    model_config = ConfigDict(title="mplab link condition")

    title: str = Field("", description="For people; default: the name.")
    source: str = Field("", description="Where the numbers come from: a paper with its section, a measurement.")
    extends: str = Field("", description="Name of the condition that this one changes; it inherits the rest.")
    wifi: PathFile = Field(description="The WiFi path.")
    lte: PathFile = Field(description="The LTE path.")
    core_rtt: DurationMs = Field(
        0.0,
        description="Round-trip time between the proxy and every server, added to the server's own. To move the proxy "
        "towards the phone, make the rtt of the paths smaller and this larger by the same amount.",
    )
    changes: tuple[ChangeFile, ...] = Field((), description="Changes of the paths while a scenario runs.")
    sweep: SweepFile | None = Field(None, description="Keys of the paths with several values: one condition for each.")


class InlineLinkFile(LinkFile):
    """A link condition written in the experiment file itself."""

    model_config = ConfigDict(title="inline link condition")

    name: Name = Field(description="Its name in the results.")


class NoSuchLinkError(InputError):
    """A name matches no link condition, or several."""


@dataclass(frozen=True)
class _Found:
    """A link condition, and all keys that describe it, including the inherited ones."""

    condition: LinkCondition
    keys: Mapping[str, Any]


def list_links(links_dir: Path) -> list[str]:
    """Return the names of the link condition files in a folder, sorted. A sweep's file makes several conditions."""
    return sorted(path.stem for path in links_dir.glob("*.yaml") if is_name(path.stem))


def load_links(name: str, links_dir: Path) -> tuple[LinkCondition, ...]:
    """Return the link conditions of ``<links_dir>/<name>.yaml``: one, or all members of a sweep.

    Without such a file, return the member of a sweep that has this name.

    Raises:
        NoSuchLinkError: there is no such condition.
        InputError: its file is wrong.
    """
    return tuple(link.condition for link in _load(name, links_dir, ()))


def load_link(name: str, links_dir: Path) -> LinkCondition:
    """Return the link condition with this name: a file, or one member of a sweep (``rtt-sweep-50``).

    Raises:
        NoSuchLinkError: there is no such condition, or the name is that of a whole sweep.
        InputError: its file is wrong.
    """
    return _one(name, _load(name, links_dir, ())).condition


def link_names(links_dir: Path) -> list[str]:
    """Return the names of all conditions in a folder, with all members of sweeps; for a wrong file, the file's name."""
    names: list[str] = []
    for name in list_links(links_dir):
        try:
            names += [link.name for link in load_links(name, links_dir)] if _sweeps(name, links_dir) else [name]
        except InputError:
            names.append(name)
    return names


def _sweeps(name: str, links_dir: Path) -> bool:
    """Return whether the file of a link condition contains the word ``sweep``, so that it may be a sweep.

    The file is not parsed, so that shell completion is fast.
    """
    return b"sweep" in (links_dir / f"{name}.yaml").read_bytes()


def file_of(name: str, links_dir: Path) -> Path:
    """Return the file that contains the condition with this name; the condition can be a member of a sweep.

    Raises:
        NoSuchLinkError: no file contains it.
    """
    names = list_links(links_dir)
    families = [name, *(family for family in names if name.startswith(f"{family}-") and _sweeps(family, links_dir))]
    family = next((family for family in families if family in names), None)
    if family is None:
        raise NoSuchLinkError(unknown("link", name, names))
    return links_dir / f"{family}.yaml"


def read_link_file(file: Path, links_dir: Path) -> tuple[LinkCondition, ...]:
    """Return the link conditions of a file, which may be in any folder.

    Args:
        file: path of the file, named like the condition.
        links_dir: folder of the conditions that it may extend. The folder of the traces is next to it.

    Raises:
        InputError: the file is wrong; the message has one line for each problem.
    """
    document = load_yaml(file)
    check_kind(document, "link")
    checker = Checker(document)
    try:
        parse_name(file.stem)
    except ValueError as error:
        checker.add((), f"the file's name is the condition's: {error}")
    own = file.resolve() == (links_dir / file.name).resolve()
    links = _Reader(checker, (), file.stem, links_dir, (file.stem,) if own else ()).read(document.data)
    checker.raise_problems()
    return tuple(link.condition for link in links)


def read_inline_link(checker: Checker, path: KeyPath, entry: object, links_dir: Path) -> list[LinkCondition]:
    """Return the link conditions that are written in an experiment file, at `path`; add problems to `checker`.

    Raises:
        InputError: the file of a condition that the entry extends is wrong.
    """
    name = entry.get("name") if isinstance(entry, dict) else None
    known = name if isinstance(name, str) and is_name(name) else ""
    reader = _Reader(checker, path, known, links_dir, model=InlineLinkFile)
    return [link.condition for link in reader.read(entry)]


def _load(name: str, links_dir: Path, chain: tuple[str, ...]) -> list[_Found]:
    """Return the conditions of the file with this name or, without such a file, the member of a sweep with this name.

    `chain` has the names of the files that led to this one, to detect a circle. Raises InputError.
    """
    names = list_links(links_dir)
    if name in names:
        return _load_file(load_yaml(links_dir / f"{name}.yaml"), name, links_dir, chain)
    for family in (family for family in names if name.startswith(f"{family}-")):
        document = load_yaml(links_dir / f"{family}.yaml")
        if isinstance(document.data, dict) and "sweep" in document.data and family not in chain:
            members = _load_file(document, family, links_dir, chain)
            matching = [member for member in members if member.condition.name == name]
            if not matching:
                raise NoSuchLinkError(unknown("link", name, [member.condition.name for member in members]))
            return matching
    raise NoSuchLinkError(unknown("link", name, names))


def _load_file(document: Document, name: str, links_dir: Path, chain: tuple[str, ...]) -> list[_Found]:
    checker = Checker(document)
    links = _Reader(checker, (), name, links_dir, (*chain, name)).read(document.data)
    checker.raise_problems()
    return links


def _one(name: str, links: list[_Found]) -> _Found:
    if len(links) == 1:
        return links[0]
    first, last = links[0].condition.name, links[-1].condition.name
    raise NoSuchLinkError(f"link '{name}' is a sweep of {len(links)} conditions: name one of them, {first} … {last}")


_ANY_PATH = {"down": UNLIMITED, "up": UNLIMITED, "rtt": "1 h"}
_ANY = dict.fromkeys(PATHS, _ANY_PATH)
"""Replaces a base that cannot be inherited. It has all required keys, and values that cause no further problem."""


@dataclass(frozen=True)
class _Reader:
    """Reader of one description of a condition or a sweep. Problems are added to `checker`.

    Attributes:
        path: path of the description in the document.
        name: name of the condition; "": the document gives no valid one.
        chain: names of the files whose reading led to this one, each extending the next; to detect a circle.
        model: model of the description.
    """

    checker: Checker
    path: KeyPath
    name: str
    links_dir: Path
    chain: tuple[str, ...] = ()
    model: type[LinkFile] = LinkFile

    def read(self, data: object) -> list[_Found]:
        """Return the link conditions that `data` describes. Raises InputError: a file that it extends is wrong."""
        if not isinstance(data, dict):
            self.checker.model(self.model, data, self.path)
            return []
        keys = self._inherited(data)
        if keys is None:
            return []
        if "sweep" not in keys or not self.name:
            return self._build(keys, self.name)
        sweep = self.checker.model(SweepFile, keys.pop("sweep"), (*self.path, "sweep"))
        return self._members(keys, sweep) if sweep is not None else []

    def _members(self, keys: Mapping[str, Any], sweep: SweepFile) -> list[_Found]:
        """Return one condition for each combination of the sweep's values; empty: a condition is wrong."""
        members: list[_Found] = []
        for variant in variants(sweep):
            own = {key: keys[key] for key in ("name", "extends") if key in keys}
            title = f"{keys.get('title') or self.name} ({variant.words})"
            name = self._member_name(variant, [member.condition.name for member in members])
            built = self._build({**inherit(keys, variant.keys), **own, "title": title}, name)
            if not built:
                return []  # the other members have the same problem
            members += built
        return members

    def _member_name(self, variant: Variant, taken: list[str]) -> str:
        name = f"{self.name}-{variant.suffix}"
        if not is_name(name):
            self.checker.add((*self.path, "sweep"), f"name '{name}': 1 to 40 of a-z, 0-9 and '-'")
        elif name in taken:
            self.checker.add((*self.path, "sweep"), f"two of its conditions would be called '{name}'")
        return name

    def _inherited(self, data: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the keys of `data` merged over those of its base; None: the base is wrong, and a problem was added."""
        if "extends" not in data:
            return dict(data)
        parent, path = data["extends"], (*self.path, "extends")
        if not isinstance(parent, str):
            self.checker.add(path, f"found {describe(parent)}: the name of a link is needed")
        elif parent in self.chain:
            circle = " → ".join((*self.chain[self.chain.index(parent) :], parent))
            self.checker.add(path, f"link '{parent}' extends itself: {circle}")
        else:
            try:
                return inherit(_one(parent, _load(parent, self.links_dir, self.chain)).keys, data)
            except NoSuchLinkError as error:
                self.checker.add(path, str(error))
        own = {key: value for key, value in data.items() if key != "extends"}
        self._build(inherit(_ANY, own), self.name)  # reports problems in the keys of this condition
        return None

    def _build(self, keys: Mapping[str, Any], name: str) -> list[_Found]:
        traces = self.links_dir.parent / TRACES_FOLDER
        readable = self._check_traces(keys, traces)
        file = self.checker.model(self.model, keys, self.path)
        if file is None or not readable:
            return []
        wifi, lte = file.wifi.condition(traces), file.lte.condition(traces)
        moments, misplaced = spread({"wifi": wifi, "lte": lte}, file.changes, traces)
        for problem in misplaced:
            self.checker.add((*self.path, "changes", problem.entry), problem.text)
        if not is_name(name):
            return []  # the wrong name has been reported
        condition = LinkCondition(
            name,
            file.title or name,
            file.source,
            wifi,
            lte,
            core_rtt_ms=file.core_rtt,
            changes=moments,
            extends=file.extends,
        )
        return [_Found(condition, keys)]

    def _check_traces(self, keys: Mapping[str, Any], traces: Path) -> bool:
        """Return whether all traces that `keys` name exist and are valid; add a problem for each wrong one."""
        changes = entries if isinstance(entries := keys.get("changes"), list) else []
        owners: list[tuple[KeyPath, object]] = [((path,), keys.get(path)) for path in PATHS]
        owners += [(("changes", index), change) for index, change in enumerate(changes)]
        good = True
        for key_path, owner in owners:
            for direction in WAYS:
                entry = owner.get(direction) if isinstance(owner, dict) else None
                name = entry.get("trace") if isinstance(entry, dict) else None
                if not isinstance(name, str) or not is_trace_name(name):
                    continue
                try:
                    Trace(traces / name).check()
                except ValueError as error:
                    self.checker.add((*self.path, *key_path, direction, "trace"), str(error))
                    good = False
        return good
