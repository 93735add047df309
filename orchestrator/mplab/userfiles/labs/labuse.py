"""The lab of a run: the virtual lab on this machine, or one phone of a lab file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mplab.base.errors import InputError
from mplab.base.paths import INTERFACES
from mplab.base.places import LABS, by_name
from mplab.base.plugins import PHONES
from mplab.base.suggest import did_you_mean, unknown
from mplab.format.abilities import Abilities, refusals
from mplab.format.link import LinkCondition
from mplab.format.names import VIRTUAL_NAME
from mplab.userfiles.labs.lab import LabFile, PhoneFile, read_lab
from mplab.userfiles.labs.machines import ShapingMachine, emulator, kinds_of, shaper_kind
from mplab.userfiles.labs.phone import PhoneKind, phone_kind
from mplab.userfiles.labs.proxyfile import ProxyFile
from mplab.userfiles.strict.check import Checker

NOT_SHAPED = "not shaped"
"""Text in place of a shaper, for a real phone's path for which the lab file names none."""


@dataclass(frozen=True)
class LabUse:
    """A lab and the phone that a run uses.

    Attributes:
        file: lab file; None: the virtual lab without a file.
        source: content of the file.
        phone: name of the phone in the file.
    """

    file: LabFile | None = None
    source: bytes = b""
    phone: str = ""

    @property
    def kind(self) -> str:
        """Name of the phone's driver; it determines the kind of lab."""
        return (self.settings.driver or "") if self.settings is not None else VIRTUAL_NAME

    @property
    def driver(self) -> PhoneKind:
        """Kind of the phone, as its driver defines it. Raises LabNotReadyError: the driver cannot be imported."""
        return phone_kind(self.kind)

    @property
    def settings(self) -> PhoneFile | None:
        """Entry of the phone in the lab file; None: there is no file."""
        return self.file.phones[self.phone] if self.file is not None else None

    @property
    def android(self) -> bool:
        """Return whether the phone has Android apps, real or emulated."""
        return self.driver.android

    @property
    def chosen_apps(self) -> Mapping[str, str]:
        """Scenario → chosen app of its ``app.yaml``. A scenario that is not in it uses the first app of its file."""
        return self.settings.chosen_apps if self.settings is not None else {}

    @property
    def proxy(self) -> ProxyFile | None:
        """Entry of the proxy in the lab file: containers run proxy and origin; None: processes of the lab run them."""
        return self.file.proxy if self.file is not None else None

    @property
    def internet(self) -> tuple[str, ...]:
        """Allowed destinations outside the lab, in the form of the proxy's allow list."""
        allowed = self.proxy.internet if self.proxy is not None else None
        return tuple(allowed.proxy_rules()) if allowed is not None else ()

    @property
    def unrooted(self) -> bool:
        """Return whether the phone is used without root, so that only apps with a proxy setting can use the agent."""
        return self.settings is not None and self.settings.unrooted

    @property
    def not_direct(self) -> str:
        """Why no transport can use the direct route to the origin in this lab; "": each of its labs can."""
        if self.android:
            return (
                "the sockets of Android apps cannot be made Multipath TCP, and the network of phone "
                f"'{self.phone}' has no route to the origin"
            )
        if self.proxy is not None:
            return "the lab file has a proxy in containers, whose origin accepts the proxy's connections only"
        if routers := self.inside():
            return f"the router {next(iter(routers))} of the lab file has no route to the origin"
        return ""

    @property
    def real(self) -> bool:
        """Return whether the phone is real: it is not part of a virtual lab, and its packets cross real networks."""
        return self.driver.real

    def machines(self) -> dict[str, ShapingMachine[BaseModel]]:
        """Return interface of the phone → machine of the lab file that shapes the interface's path.

        Paths that no machine of the file shapes are left out, as are those that the link emulator shapes.
        """
        if self.file is None:
            return {}
        entries, itself = self.file.machines(), self.file.by_itself(self.phone)
        return {
            interface: itself if itself is not None and attachment.at else entries[attachment.place(self.phone)]
            for interface, attachment in self.file.phones[self.phone].attachments().items()
        }

    def where(self) -> dict[str, str]:
        """Return interface of the phone → shaper of its path, as in ``cell.json``.

        A shaper is a text: ``router wifi (tc)``, ``linkem``, `NOT_SHAPED`.
        """
        machines, otherwise = self.machines(), NOT_SHAPED if self.real else emulator().method
        return {i: _where(machines[i]) if i in machines else otherwise for i in INTERFACES.values()}

    def inside(self) -> dict[str, ShapingMachine[BaseModel]]:
        """Return the routers that the lab boots for this phone, by name."""
        return {machine.name: machine for machine in self.machines().values() if machine.inside}

    def abilities(self, shapers: Mapping[str, Abilities]) -> dict[str, Abilities]:
        """Return path (``wifi``, ``lte``) → limits of its shaper.

        Args:
            shapers: limits by kind of shaper. A path with a shaper of another kind is left out.
        """
        limits, machines = {}, self.machines()
        for path, interface in INTERFACES.items():
            if interface in machines:
                machine = machines[interface]
                if machine.kind in shapers:
                    limits[path] = replace(shapers[machine.kind], title=_where(machine))
            elif self.real:
                limits[path] = _nothing(self.phone, path)
            elif (emulated := next((shapers[kind] for kind in kinds_of("") if kind in shapers), None)) is not None:
                limits[path] = emulated
        return limits

    def refusals(self, link: LinkCondition, shapers: Mapping[str, Abilities]) -> list[str]:
        """Return the parts of a link condition that this lab cannot make, each once, as text.

        `shapers` has the limits by kind of shaper, as for `abilities`.
        """
        shaped = [path for path, interface in INTERFACES.items() if interface in self.machines()]
        settings = self.settings
        more = [*self.driver.refusals(link, self.phone, settings, shaped)] if settings is not None else []
        return list(dict.fromkeys((*refusals(link, self.abilities(shapers)), *more)))

    def determinants(self) -> str | dict[str, Any]:
        """Return the parts of the lab on which a cell's result may depend, for the cell's hash."""
        if self.file is None:
            return VIRTUAL_NAME
        routers = {name: router.settings.model_dump(mode="json") for name, router in self.inside().items()}
        phone = self.file.phones[self.phone].model_dump(mode="json", exclude_none=True)
        proxy = {"proxy": self.proxy.driver} if self.proxy is not None else {}
        return {"phone": phone, "routers": routers, **proxy}

    def to_json(self) -> dict[str, Any]:
        """Return ``lab`` of manifest.json: kind and clock; for a lab file also its content, phone and shapers."""
        lab = {"kind": self.kind, "same_clock": self.driver.same_clock}
        if self.file is None:
            return lab
        content = self.file.model_dump(mode="json", exclude_none=True)
        return {**lab, "phone": self.phone, "paths": self.where(), "file": content}


VIRTUAL = LabUse()
"""The virtual lab on this machine, without a lab file."""


def _where(machine: ShapingMachine[BaseModel]) -> str:
    return f"{machine.label} ({shaper_kind(machine.kind).method})"


def _nothing(phone: str, path: str) -> Abilities:
    title = f"nothing shapes this path of {phone}, since the lab file has no '{path}' for it"
    return Abilities(title, disciplines=(), traces=False, shapes=False)


class NoSuchLabError(InputError):
    """The value that names a lab is neither ``virtual`` nor the path of a file."""


def use_lab(path: Path, phone: str = "") -> LabUse:
    """Return the lab of a file for a run with one of its phones.

    Args:
        path: path of the file.
        phone: name of the phone; "": the only one.

    Raises:
        InputError: the file is wrong; it has no such phone, or several and none was chosen; or runs cannot use the
            phone.
    """
    lab, document = read_lab(path)
    checker = Checker(document)
    if phone and phone not in lab.phones:
        checker.add(("phones",), unknown("phone", phone, lab.phones))
    elif not lab.phones:
        checker.add((), "no phone: a run needs one, below 'phones'")
    elif not phone and len(lab.phones) > 1:
        checker.add(("phones",), f"several phones: choose one, --phone {' or --phone '.join(lab.phones)}")
    chosen = phone or next(iter(lab.phones), "")
    if not checker.lines():
        kind = lab.phones[chosen].kind
        if kind is None:
            checker.add(("phones", chosen), f"no 'driver': a run needs one; allowed: {', '.join(PHONES)}")
        else:
            kind.check_use(lab, chosen, checker)
    checker.raise_problems()
    return LabUse(lab, document.source, chosen)


def find_lab(name: str, folder: Path, phone: str = "") -> LabUse:
    """Return the lab that a value in an experiment file or option names: ``virtual``, or a lab file.

    Args:
        name: the value: a path, or the name of a lab file that comes with mplab (``virtual-router``).
        folder: base of a relative path.
        phone: name of the phone; "": the only one of the file.

    Raises:
        NoSuchLabError: there is no such file.
        InputError: see `use_lab`; or `phone` is given for the virtual lab.
    """
    if name == VIRTUAL_NAME:
        if phone:
            raise InputError(f"--phone {phone}: the virtual lab has one phone, without a name. Add --lab FILE")
        return VIRTUAL
    path = by_name(Path(name).expanduser(), LABS, folder)
    if not path.is_file():
        known = [VIRTUAL_NAME, *sorted(file.stem for file in LABS.glob("*.yaml"))]
        raise NoSuchLabError(
            f"lab {name!r}: no such file: {path}.{did_you_mean(name, known)} Allowed: {VIRTUAL_NAME} (the lab on this "
            f"machine only), the path of a lab file, or one that comes with mplab: {', '.join(known[1:])}"
        )
    return use_lab(path, phone)
