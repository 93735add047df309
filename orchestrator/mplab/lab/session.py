"""Keep a lab up for manual use: one link condition, one transport, the requested services."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from mplab.base.undo import UndoStack
from mplab.drivers.services import load_service
from mplab.drivers.transport import transport_named
from mplab.format.link import LinkCondition
from mplab.format.sockets import SocketSettings
from mplab.lab.catalog import LINKS_DIR
from mplab.lab.driver import LabSettings, phone_driver
from mplab.lab.topology import SCRATCH
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse, use_lab
from mplab.userfiles.links.link import load_link, read_inline_link
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import parse_yaml


@dataclass(frozen=True)
class LabSessionSettings:
    """The settings of a lab for manual use."""

    link: str | Mapping[str, object]
    """Link condition as an experiment file writes it: a name, or a mapping."""
    transport: str
    congestion_control: str
    seed: int
    keep: bool
    """True: keep the lab up until a signal arrives; False: end it after the test of the transport."""
    services: tuple[str, ...] = ()
    """Services of the origin, e.g. Icecast; its web and file servers are not included."""
    lab_file: str = ""
    """Path of the lab file; "": the default virtual lab."""
    phone: str = ""
    """Name of the phone in the lab file."""

    def use(self) -> LabUse:
        """Return the lab file and the phone in it that the session uses. Raises InputError."""
        return use_lab(Path(self.lab_file), self.phone) if self.lab_file else VIRTUAL


class LabSession:
    """A lab with its links shaped and the agent running, until its context ends."""

    def __init__(self, settings: LabSessionSettings) -> None:
        self._settings = settings
        self._stack = ExitStack()
        self._facts: dict[str, object] = {}

    def __enter__(self) -> Self:
        """Start the lab, probe the links and test the transport."""
        settings = self._settings
        with ExitStack() as stack:
            use = settings.use()
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="mplab-logs-"))) if use.real else SCRATCH
            logs = folder / "logs"
            lab = stack.enter_context(
                phone_driver(use.kind).open_lab(
                    LabSettings(
                        seed=settings.seed,
                        congestion_control=settings.congestion_control,
                        logs=logs,
                        services=[load_service(name) for name in settings.services],
                        use=use,
                    )
                )
            )
            undo = stack.enter_context(UndoStack())
            condition = condition_of(settings.link)
            paths = condition.paths()
            lab.shaper.apply(paths, seed=settings.seed, core_rtt_ms=condition.core_rtt_ms)
            measured = lab.shaper.probe(paths)
            transport = transport_named(settings.transport, lab.phone.interfaces)
            transport.stripped = condition.stripped
            agent = lab.set_up_transport(
                transport, sockets=SocketSettings(settings.congestion_control), logs=logs, undo=undo
            )
            agent.start()
            active = agent.check(subflows=transport.expected_subflows)
            self._facts = {
                **lab.describe(),
                "link": condition.name,
                "transport": settings.transport,
                "measured": {interface: vars(path) for interface, path in measured.items()},
                "where": {interface: lab.shaper.where(interface) for interface in paths},
                "active": dict(active),
                "services": {name: dict(load_service(name).hosts) for name in settings.services},
                "problems": transport.check_active(active),
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the agent and the lab."""
        self._stack.__exit__(kind, error, trace)

    def describe(self) -> dict[str, object]:
        """Return nodes, link, transport, and the results of the probe and of the test connection."""
        return self._facts


def condition_of(link: str | Mapping[str, object]) -> LinkCondition:
    """Return the link condition that `link` names or contains; `link` is written as in an experiment file.

    Raises:
        InputError: the condition is wrong.
    """
    if isinstance(link, str):
        return load_link(link, LINKS_DIR)
    checker = Checker(parse_yaml(json.dumps(link).encode(), str(link["name"])))
    conditions = read_inline_link(checker, (), link, LINKS_DIR)
    checker.raise_problems()
    (condition,) = conditions
    return condition
