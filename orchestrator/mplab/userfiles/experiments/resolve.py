"""Read an experiment file as an experiment: resolve names, validate parameters, check combinations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from mplab.base.errors import InputError
from mplab.base.places import ROOT
from mplab.base.suggest import describe, unknown
from mplab.format.abilities import Abilities
from mplab.format.direction import Queue
from mplab.format.experiment import (
    LEAST_DEFAULT_TIMEOUT_S,
    Ending,
    ExperimentBase,
    Matrix,
    SmallestEffect,
    Tolerance,
)
from mplab.format.hooks import Hooks
from mplab.format.link import LinkCondition
from mplab.format.names import VIRTUAL_NAME, FileModel, is_name, parse_name
from mplab.format.palette import distinct_styles
from mplab.format.record import json_of
from mplab.format.units import format_duration_s
from mplab.userfiles.experiments.app import app_files, chosen_app
from mplab.userfiles.experiments.budgets import read_budgets
from mplab.userfiles.experiments.claims import claim_of
from mplab.userfiles.experiments.experiment import (
    MAX_CELLS,
    Experiment,
    ExperimentFile,
    ScenarioUse,
    TransportUse,
    interval_rule,
)
from mplab.userfiles.experiments.labels import Names, check_names
from mplab.userfiles.experiments.layers import merged, parents_of, read_layers
from mplab.userfiles.experiments.transport import SocketsFile, TransportInfo, ViaOptions
from mplab.userfiles.experiments.variables import fill, read_given
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse, NoSuchLabError, find_lab
from mplab.userfiles.links.link import NoSuchLinkError, load_links, read_inline_link
from mplab.userfiles.strict.check import Checker, raise_lines
from mplab.userfiles.strict.yaml import KeyPath


class ScenarioInfo(Protocol):
    """Properties of a scenario that are needed to plan it."""

    @property
    def parameters(self) -> type[BaseModel]:
        """Model that validates the scenario's parameters strictly."""

    @property
    def socks(self) -> bool:
        """Return whether the scenario's program can be configured to use a SOCKS proxy."""

    def time_limit_s(self, parameters: BaseModel, /) -> float:
        """Return the maximum time that the scenario may take in a cell, seconds."""

    def estimate_s(self, parameters: BaseModel, /) -> float:
        """Return the time that the scenario usually takes in a cell, seconds."""


@dataclass(frozen=True)
class Catalog:
    """Objects that the names in an experiment file can refer to."""

    transports: Mapping[str, TransportInfo]
    scenarios: Mapping[str, ScenarioInfo]
    links_dir: Path
    shapers: Mapping[str, Abilities] = field(default_factory=dict)
    """Kind of shaper → its limits; conditions are not checked against other kinds."""
    android: Mapping[str, ScenarioInfo] = field(default_factory=dict)
    """Scenarios that run on Android phones over adb, in their form for such phones."""

    def on(self, lab: LabUse) -> Mapping[str, ScenarioInfo]:
        """Return name → scenario for the scenarios that a lab's phone can run, in the form for this kind of phone."""
        return self.android if lab.android else self.scenarios


class _NoOptions(FileModel):
    pass


@dataclass(frozen=True)
class _Use:
    """One valid entry of ``transports`` or ``scenarios`` in the file: a name with a label and options."""

    path: KeyPath
    name: str
    label: str
    options: Mapping[str, Any]
    options_path: KeyPath


def load_experiment(
    path: Path,
    *,
    catalog: Catalog,
    lab: LabUse | None = None,
    phone: str = "",
    given: Mapping[str, Any] | None = None,
    kept: Path | None = None,
) -> Experiment:
    """Return the experiment that the file at `path` describes.

    Args:
        path: path of the file.
        catalog: objects that its names can refer to.
        lab: lab of the run, in place of the file's; None: the lab that the file names.
        phone: name of the phone in the lab file that the experiment file names; "": the only one.
        given: values of the file's variables; they override those in the file.
        kept: folder of a run directory with the files that the experiment file extends, and with the values of
            variables that were set outside the file.

    Raises:
        InputError: the file is wrong. The message has one line for each problem, sorted by line number.
    """
    layers = read_layers(path, kept)
    given = {**(read_given(kept) if kept is not None else {}), **(given or {})}
    filled = fill(merged(layers), layers, given)
    document = filled.document
    checker = Checker(document)
    file = checker.model(ExperimentFile, document.data)
    resolver = _Resolver(catalog, checker, document.data if isinstance(document.data, dict) else {}, kept)
    transports = resolver.transports()
    links = resolver.links()
    lab = lab if lab is not None else resolver.lab(phone)
    resolver.check_direct(lab)
    scenarios = resolver.scenarios(lab)
    if file is not None:
        links = resolver.with_queues(links, file.queues)
        timeout_s = _cell_timeout_s(file, [use for _, use in scenarios])
        resolver.check_combinations(file, timeout_s, scenarios, links)
        resolver.check_changes(timeout_s, links)
        resolver.check_shapers(lab, links)
        resolver.check_sockets(lab, file, transports)
        names = Names(
            [use.label for use in transports], [use.label for _, use in scenarios], [link.name for link in links]
        )
        matrix = Matrix(
            tuple(cells.to_cells() for cells in file.include), tuple(cells.to_cells() for cells in file.exclude)
        )
        check_names(checker, file, matrix, names)
        budgets = read_budgets(checker, names.transports, names.scenarios, names.links)
    raise_lines([*checker.lines(), *resolver.file_problems])
    assert file is not None  # noqa: S101 - raise_lines has raised otherwise
    resolved = Experiment(
        path=path,
        source=document.source,
        name=file.name,
        title=file.title or file.name,
        lab=lab,
        transports=tuple(transports),
        links=tuple(links),
        scenarios=tuple(use for _, use in scenarios),
        tolerance=Tolerance(file.tolerance.rtt, file.tolerance.rate),
        receive_buffer_bytes=file.receive_buffer,
        cell_timeout_s=timeout_s,
        matrix=matrix,
        ending=Ending(file.max, file.until, file.stop.failures, interval_rule(file.stop.interval, document)),
        hooks=Hooks.model_validate(json_of(file.hooks)),
        claims=tuple(
            claim_of(claim, names.links, document.place(("claims", index))) for index, claim in enumerate(file.claims)
        ),
        budgets=tuple(budgets),
        smallest_effect=SmallestEffect(file.smallest_effect.relative, file.smallest_effect.time),
        parents=parents_of(layers, kept=kept is not None),
        variables=filled.values,
        given=given,
    )
    return replace(resolved, **_as_given(file))


_RESOLVED = frozenset(
    {
        "title",
        "links",
        "tolerance",
        "receive_buffer_bytes",
        "cell_timeout_s",
        "hooks",
        "claims",
        "budgets",
        "smallest_effect",
    }
)
"""Fields of an experiment that are derived from keys of its file. Each other field is the value of its key."""


def _as_given(file: ExperimentFile) -> dict[str, Any]:
    keys = {
        entry.name: entry.name.removesuffix("_s") for entry in fields(ExperimentBase) if entry.name not in _RESOLVED
    }
    return {name: getattr(file, key) for name, key in keys.items() if key in ExperimentFile.model_fields}


class _Resolver:
    """Resolver of the names in the parsed YAML of an experiment file.

    It works on unvalidated data, so that one wrong key does not hide other problems.
    """

    def __init__(self, catalog: Catalog, checker: Checker, data: Mapping[str, Any], kept: Path | None = None) -> None:
        self._catalog = catalog
        self._kept = kept
        self._checker = checker
        self._data = data
        self.file_problems: list[str] = []
        """Problems of the link and lab files that the experiment names."""
        self._link_places: dict[str, KeyPath] = {}
        self._direct: list[KeyPath] = []
        self._transport_places: dict[str, KeyPath] = {}

    def transports(self) -> list[TransportUse]:
        resolved = []
        for use in self._uses("transports", "transport", "options"):
            self._transport_places[use.label] = use.options_path
            name, colon, variant = use.name.partition(":")
            info = self._catalog.transports.get(name)
            if info is None or (colon and not info.variant_option):
                self._unknown(use, "transport", self._catalog.transports)
                continue
            values = dict(use.options)
            if colon:
                if not self._check_variant(use, info, variant):
                    continue
                values[info.variant_option] = variant
            common = {key: values.pop(key) for key in SocketsFile.model_fields if key in values}
            model = info.options_model or _NoOptions
            also = ("label", *SocketsFile.model_fields)
            options = self._checker.model(model, values, use.options_path, also=also)
            sockets = self._checker.model(SocketsFile, common, use.options_path)
            if options is not None and sockets is not None:
                resolved.append((use, info, options, sockets))
                if isinstance(options, ViaOptions) and options.via == "direct":
                    self._direct.append((*use.options_path, "via"))
        looks = [info.look(options) for _, info, options, _ in resolved]
        styles = distinct_styles([(look.title, look.colour, look.marker) for look in looks])
        return [
            TransportUse(
                label=use.label,
                name=info.name,
                options=options if info.options_model else None,
                colour=colour,
                marker=marker,
                title=look.title if use.label == _default_label(use.name) else f"{look.title} ({use.label})",
                files=self._files(use, info, options),
                paths=info.paths,
                sessions=info.sessions,
                sockets=sockets,
            )
            for (use, info, options, sockets), look, (colour, marker) in zip(resolved, looks, styles, strict=True)
        ]

    def check_direct(self, lab: LabUse) -> None:
        """Add a problem for each transport that requests the direct route, if the lab has none."""
        if not (reason := lab.not_direct):
            return
        for path in self._direct:
            self._checker.add(path, f"'direct' is not possible in this lab: {reason}")

    def _files(self, use: _Use, info: TransportInfo, options: BaseModel) -> dict[str, bytes]:
        """Return the files that a transport's options name: path in the run's folder ``experiment`` → content.

        They are read from the run directory if it has copies of them, otherwise from this checkout.
        """
        contents = {}
        for option, folder in info.files.items():
            name = getattr(options, option)
            if name is None:
                continue
            path = f"{folder.name}/{name}.yaml"
            candidates = [*([self._kept / path] if self._kept is not None else []), folder / f"{name}.yaml"]
            try:
                contents[path] = next(candidate for candidate in candidates if candidate.is_file()).read_bytes()
            except StopIteration:
                names = sorted(file.stem for file in folder.glob("*.yaml"))
                text = f"{unknown(option, name, names)} (files in {folder.relative_to(ROOT)})"
                self._checker.add((*use.options_path, option), text)
        return contents

    def _check_variant(self, use: _Use, info: TransportInfo, variant: str) -> bool:
        """Return whether a variant of a transport, as in ``mpflex:minrtt``, is valid and not also given as an option.

        If not, a problem is added.
        """
        if variant not in info.variants:
            self._checker.add(use.path, unknown(f"{info.variant_option} of {info.name}", variant, info.variants))
        elif info.variant_option in use.options:
            text = f"{use.name!r} says the {info.variant_option} already: give it once"
            self._checker.add((*use.options_path, info.variant_option), text)
        else:
            return True
        return False

    def scenarios(self, lab: LabUse) -> list[tuple[KeyPath, ScenarioUse]]:
        uses = []
        there = self._catalog.on(lab)
        for use in self._uses("scenarios", "scenario", "parameters"):
            if use.name not in self._catalog.scenarios:
                self._unknown(use, "scenario", self._catalog.scenarios)
                continue
            scenario = there.get(use.name)
            if scenario is None:
                text = f"scenario '{use.name}' has no Android app, which phone '{lab.phone}' would need"
                self._checker.add(use.path, f"{text}. Allowed there: {', '.join(there)}")
                continue
            if lab.unrooted and not _takes_proxy(lab, use.name, scenario):
                text = (
                    f"scenario '{use.name}' has no proxy setting, and phone '{lab.phone}' is used without root: "
                    f"its traffic would go past the transport. Allowed there: {', '.join(_taking_proxy(lab, there))}"
                )
                self._checker.add(use.path, text)
                continue
            if missing := _missing_internet(lab, use.name):
                self._checker.add(use.path, f"scenario '{use.name}': {missing}")
                continue
            parameters = self._checker.model(scenario.parameters, use.options, use.options_path, also=("label",))
            if parameters is not None:
                limit_s, estimate_s = scenario.time_limit_s(parameters), scenario.estimate_s(parameters)
                files = app_files(use.name) if lab.android else {}
                uses.append((use.path, ScenarioUse(use.label, use.name, parameters, limit_s, estimate_s, files)))
        return uses

    def links(self) -> list[LinkCondition]:
        """Return every link condition of the experiment, with all members of sweeps."""
        conditions: dict[str, LinkCondition] = {}
        lines: dict[str, int] = {}
        for index, entry in enumerate(self._entries("links")):
            path: KeyPath = ("links", index)
            links = self._links(path, entry)
            names = [link.name for link in links] or ([entry] if isinstance(entry, str) else [])
            for name in names:
                if name in lines:
                    self._checker.add(path, f"link '{name}' is listed twice (first in line {lines[name]})")
                else:
                    lines[name] = self._checker.document.line(path)
            for link in links:
                conditions.setdefault(link.name, link)
                self._link_places.setdefault(link.name, path)
        return list(conditions.values())

    def with_queues(self, links: list[LinkCondition], queues: Sequence[Queue]) -> list[LinkCondition]:
        """Return every link once with each queue; without `queues`, return `links`."""
        if not queues:
            return links
        varied: dict[str, LinkCondition] = {}
        for link in links:
            place = self._link_places[link.name]
            if not link.queues:
                text = f"link '{link.name}' has no rate, so that no packet waits and 'queues' would have no effect"
                self._checker.add(place, text)
            for queue in queues:
                variant = link.with_queue(queue)
                if not is_name(variant.name):
                    self._checker.add(place, f"name '{variant.name}' by 'queues': 1 to 40 of a-z, 0-9 and '-'")
                elif variant.name in varied:
                    self._checker.add(("queues",), f"two links would be called '{variant.name}'")
                varied[variant.name] = variant
                self._link_places[variant.name] = place
        return list(varied.values())

    def lab(self, phone: str) -> LabUse:
        """Return the lab that the file names, by a path relative to the file; add a problem if it is wrong."""
        name = self._data.get("lab", VIRTUAL_NAME)
        folder = Path(self._checker.document.file_of(("lab",))).parent
        try:
            return find_lab(name, folder, phone) if isinstance(name, str) and name else VIRTUAL
        except NoSuchLabError as error:
            self._checker.add(("lab",), str(error))
        except InputError as error:
            self.file_problems += str(error).splitlines()
            if name != VIRTUAL_NAME:
                self._checker.add(("lab",), f"lab file {name!r} cannot be used. Its problems follow")
        return VIRTUAL

    def check_combinations(
        self,
        file: ExperimentFile,
        timeout_s: float,
        scenarios: list[tuple[KeyPath, ScenarioUse]],
        links: Sequence[LinkCondition],
    ) -> None:
        for _, use in scenarios:
            if use.time_limit_s > timeout_s:
                timeout, limit = format_duration_s(timeout_s), format_duration_s(use.time_limit_s)
                text = f"{timeout} is shorter than what scenario '{use.label}' may take: at least {limit} is needed"
                self._checker.add(("cell_timeout",), text)
        cells = len(file.transports) * len(links) * len(file.scenarios) * file.repetitions
        if cells > MAX_CELLS:
            factors = (
                f"{len(file.scenarios)} scenarios, {len(file.transports)} transports, "
                f"{len(links)} links and {file.repetitions} repetitions"
            )
            self._checker.add(("repetitions",), f"{factors} make {cells} cells: at most {MAX_CELLS} are allowed")

    def check_changes(self, timeout_s: float, links: Sequence[LinkCondition]) -> None:
        """Add a problem for each link condition with a change after the cell timeout."""
        for link in links:
            late = next((moment for moment in link.changes if moment.at_s >= timeout_s), None)
            if late is not None:
                when, timeout = format_duration_s(late.at_s), format_duration_s(timeout_s)
                text = (
                    f"link '{link.name}' changes at {when} ({late.path}: {late.text}): "
                    f"'cell_timeout' must be longer than that, not {timeout}"
                )
                self._checker.add(self._link_places[link.name], text)

    def check_shapers(self, lab: LabUse, links: Sequence[LinkCondition]) -> None:
        """Add a problem for each part of a link condition that the shapers of the lab cannot make."""
        for link in links:
            for problem in lab.refusals(link, self._catalog.shapers):
                self._checker.add(self._link_places[link.name], f"link '{link.name}': {problem}")

    def check_sockets(self, lab: LabUse, file: ExperimentFile, transports: Sequence[TransportUse]) -> None:
        """Add a problem for each receive buffer that the phone of the lab cannot limit."""
        if not lab.unrooted:
            return
        places: list[KeyPath] = [("receive_buffer",)] if file.receive_buffer is not None else []
        places += [
            (*self._transport_places[use.label], "receive_buffer")
            for use in transports
            if use.sockets.receive_buffer is not None
        ]
        for place in places:
            text = f"phone '{lab.phone}' is used without root, and only root can limit its receive buffers"
            self._checker.add(place, f"{text}: leave 'receive_buffer' out")

    def _links(self, path: KeyPath, entry: object) -> Sequence[LinkCondition]:
        if not isinstance(entry, dict | str):
            self._checker.add(path, f"found {describe(entry)}: the name of a link, or a condition, is needed")
            return ()
        try:
            if isinstance(entry, dict):
                return read_inline_link(self._checker, path, entry, self._catalog.links_dir)
            return load_links(entry, self._catalog.links_dir)
        except NoSuchLinkError as error:
            self._checker.add(path, str(error))
        except InputError as error:
            self.file_problems += [line for line in str(error).splitlines() if line not in self.file_problems]
        return ()

    def _uses(self, key: str, kind: str, options_word: str) -> Iterator[_Use]:
        """Yield the valid entries of the list `key`; add a problem for each wrong entry and each duplicate label."""
        lines: dict[str, int] = {}
        for index, entry in enumerate(self._entries(key)):
            use = self._use((key, index), entry, kind, options_word)
            if use is None:
                continue
            if use.label in lines:
                unlabelled = use.label == _default_label(use.name)
                hint = f": give each a label, {{{use.name}: {{label: …}}}}" if unlabelled else ""
                text = f"{kind} label '{use.label}' is used twice (first in line {lines[use.label]}){hint}"
                self._checker.add(use.path, text)
            lines.setdefault(use.label, self._checker.document.line(use.path))
            yield use

    def _use(self, path: KeyPath, entry: object, kind: str, options_word: str) -> _Use | None:
        if isinstance(entry, str):
            return _Use(path, entry, _default_label(entry), {}, path)
        if not isinstance(entry, dict):
            self._checker.add(path, f"found {describe(entry)}: a name, or a name with {options_word}, is needed")
            return None
        if len(entry) != 1:
            keys = ", ".join(entry) or "none"
            self._checker.add(
                path,
                f"found {len(entry)} keys ({keys}): one {kind} with its {options_word} below it is needed",
            )
            return None
        name, options = next(iter(entry.items()))
        inner = (*path, name)
        if options is None:
            options = {}
        if not isinstance(options, dict):
            self._checker.add(inner, f"found {describe(options)}: a mapping of {options_word} is needed")
            return None
        label = _default_label(name)
        if "label" in options:
            try:
                label = parse_name(options["label"])
            except ValueError as error:
                self._checker.add((*inner, "label"), str(error))
        return _Use(path, name, label, {k: v for k, v in options.items() if k != "label"}, inner)

    def _unknown(self, use: _Use, kind: str, allowed: Mapping[str, object]) -> None:
        self._checker.add(use.path, unknown(kind, use.name, allowed))

    def _entries(self, key: str) -> Sequence[Any]:
        entries = self._data.get(key)
        return entries if isinstance(entries, list) else []


def _cell_timeout_s(file: ExperimentFile, scenarios: Sequence[ScenarioUse]) -> float:
    """Return the maximum time of one attempt at a cell, seconds: the file's, or the longest limit of its scenarios."""
    if file.cell_timeout is not None:
        return file.cell_timeout
    return max([LEAST_DEFAULT_TIMEOUT_S, *(use.time_limit_s for use in scenarios)])


def _default_label(name: str) -> str:
    """Return the label of an entry without ``label``: its name, with ``-`` for ``:``."""
    return name.replace(":", "-")


def _missing_internet(lab: LabUse, name: str) -> str:
    """Return a sentence about the Internet access that a scenario's app needs and the lab's proxy does not give.

    The sentence includes the remedy. "": no access is missing.

    Only a real phone has real apps. The apps of an emulated phone connect to the lab's own servers.
    """
    app = chosen_app(name, lab.chosen_apps) if lab.real and lab.android else None
    if app is None or not app.internet:
        return ""
    internet = lab.proxy.internet if lab.proxy is not None else None
    missing = internet.missing_ports(app.internet) if internet is not None else app.internet
    if not missing and internet is not None and internet.names == "upstream":
        return ""
    lacking = f"allows no public address at TCP port {', '.join(map(str, missing))}" if missing else "resolves no names"
    ports = ",".join(map(str, app.internet))
    return (
        f"the app {app.package} needs the Internet, and the lab's proxy {lacking}. Add to the lab file, below 'proxy': "
        f"internet: {{allow: ['public:{ports}'], names: upstream}}"
    )


def _takes_proxy(lab: LabUse, name: str, scenario: ScenarioInfo) -> bool:
    """Return whether the scenario can use a proxy: its browser can, or the app that this lab chose for it can."""
    app = chosen_app(name, lab.chosen_apps)
    return scenario.socks or (app is not None and app.proxy != "")


def _taking_proxy(lab: LabUse, scenarios: Mapping[str, ScenarioInfo]) -> Iterator[str]:
    """Yield the names of the scenarios that the lab can run on a phone without root: those that can use a proxy."""
    return (name for name, scenario in scenarios.items() if _takes_proxy(lab, name, scenario))
