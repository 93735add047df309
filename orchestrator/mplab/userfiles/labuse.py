"""The lab that a run is made in: this machine alone, or one phone of a lab file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mplab.base.errors import InputError
from mplab.base.paths import INTERFACES
from mplab.base.plugins import PHONES
from mplab.base.suggest import unknown
from mplab.format.abilities import Abilities, refusals
from mplab.format.link import LinkCondition
from mplab.userfiles.check import Checker
from mplab.userfiles.lab import LabFile, PhoneFile, read_lab
from mplab.userfiles.machines import ShapingMachine, emulator, kinds_of, shaper_kind
from mplab.userfiles.phone import PhoneKind, phone_kind
from mplab.userfiles.proxyfile import ProxyFile

VIRTUAL_NAME = "virtual"
"""What an experiment file calls the lab that needs no lab file: the kind of its phone."""

NOT_SHAPED = "not shaped"
"""Where a real phone's path is shaped that the lab file attaches to nothing."""


@dataclass(frozen=True)
class LabUse:
    """A lab with the phone that is used.

    Attributes:
        file: as written; None: the virtual lab as it is.
        source: the file, byte for byte.
        phone: its name in the file.
    """

    file: LabFile | None = None
    source: bytes = b""
    phone: str = ""

    @property
    def kind(self) -> str:
        """The phone's driver, which makes the lab."""
        return (self.settings.driver or "") if self.settings is not None else VIRTUAL_NAME

    @property
    def driver(self) -> PhoneKind:
        """The kind of its phone."""
        return phone_kind(self.kind)

    @property
    def settings(self) -> PhoneFile | None:
        """What the file says of the phone; None: there is no file."""
        return self.file.phones[self.phone] if self.file is not None else None

    @property
    def android(self) -> bool:
        """The phone has Android apps of its own."""
        return self.driver.android

    @property
    def chosen_apps(self) -> Mapping[str, str]:
        """Scenario → app of its ``app.yaml``, where the file does not leave it to be the first one."""
        return self.settings.chosen_apps if self.settings is not None else {}

    @property
    def proxy(self) -> ProxyFile | None:
        """Proxy and origin as containers; None: as processes of the lab."""
        return self.file.proxy if self.file is not None else None

    @property
    def internet(self) -> tuple[str, ...]:
        """Destinations outside of the lab, in the form of the proxy's allow list."""
        allowed = self.proxy.internet if self.proxy is not None else None
        return tuple(allowed.proxy_rules()) if allowed is not None else ()

    @property
    def unrooted(self) -> bool:
        """The phone is used without root: what it sends can be led to the agent by its apps alone."""
        return self.settings is not None and self.settings.unrooted

    @property
    def real(self) -> bool:
        """The phone is a real one: it is in nobody's namespaces, and its packets take real networks."""
        return self.driver.real

    def machines(self) -> dict[str, ShapingMachine[BaseModel]]:
        """The phone's interface → what shapes it beside the link emulator."""
        if self.file is None:
            return {}
        entries, itself = self.file.machines(), self.file.by_itself(self.phone)
        return {
            interface: itself if itself is not None and place.at else entries[place.place(self.phone)]
            for interface, place in self.file.phones[self.phone].attachments().items()
        }

    def where(self) -> dict[str, str]:
        """Interface → where its path is shaped, as in ``cell.json``: ``router wifi (tc)``, ``linkem``, `NOT_SHAPED`."""
        machines, otherwise = self.machines(), NOT_SHAPED if self.real else emulator().method
        return {i: _where(machines[i]) if i in machines else otherwise for i in INTERFACES.values()}

    def inside(self) -> dict[str, ShapingMachine[BaseModel]]:
        """The routers that the lab boots, by name: those that the phone is behind."""
        return {machine.name: machine for machine in self.machines().values() if machine.inside}

    def abilities(self, shapers: Mapping[str, Abilities]) -> dict[str, Abilities]:
        """Path (``wifi``, ``lte``) → what its shaper can do; of a kind that is not in `shapers`, nothing is known."""
        found, machines = {}, self.machines()
        for path, interface in INTERFACES.items():
            if interface in machines:
                machine = machines[interface]
                if machine.kind in shapers:
                    found[path] = replace(shapers[machine.kind], title=_where(machine))
            elif self.real:
                found[path] = _nothing(self.phone, path)
            elif (emulated := next((shapers[kind] for kind in kinds_of("") if kind in shapers), None)) is not None:
                found[path] = emulated
        return found

    def refusals(self, link: LinkCondition, shapers: Mapping[str, Abilities]) -> list[str]:
        """What of a link condition this lab cannot make, each thing once; `shapers` as of `abilities`."""
        shaped = [path for path, interface in INTERFACES.items() if interface in self.machines()]
        settings = self.settings
        more = [*self.driver.refusals(link, self.phone, settings, shaped)] if settings is not None else []
        return list(dict.fromkeys((*refusals(link, self.abilities(shapers)), *more)))

    def determinants(self) -> str | dict[str, Any]:
        """What of the lab a cell's result may depend on."""
        if self.file is None:
            return VIRTUAL_NAME
        routers = {name: router.settings.model_dump(mode="json") for name, router in self.inside().items()}
        phone = self.file.phones[self.phone].model_dump(mode="json", exclude_none=True)
        proxy = {"proxy": self.proxy.driver} if self.proxy is not None else {}
        return {"phone": phone, "routers": routers, **proxy}

    def to_json(self) -> dict[str, Any]:
        """``lab`` in manifest.json: kind, and with a lab file its content, the phone, and where each path is shaped."""
        lab = {"kind": self.kind, "same_clock": self.driver.same_clock}
        if self.file is None:
            return lab
        content = self.file.model_dump(mode="json", exclude_none=True)
        return {**lab, "phone": self.phone, "paths": self.where(), "file": content}


VIRTUAL = LabUse()
"""What there is on this machine alone."""


def _where(machine: ShapingMachine[BaseModel]) -> str:
    return f"{machine.label} ({shaper_kind(machine.kind).method})"


def _nothing(phone: str, path: str) -> Abilities:
    title = f"nothing shapes this path of {phone}, since the lab file has no '{path}' for it"
    return Abilities(title, disciplines=(), traces=False, shapes=False)


class NoSuchLabError(InputError):
    """No lab of that name, no file at that path."""


def use_lab(path: Path, phone: str = "") -> LabUse:
    """One phone of a lab file.

    Args:
        path: of the file.
        phone: its name; "": the only one.

    Raises:
        InputError: the file is wrong, has no such phone, or several and none was chosen; runs cannot use the phone.
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
    """The lab that an experiment file or an option means: ``virtual``, or the path of a lab file.

    Args:
        name: as given.
        folder: that a relative path begins at.
        phone: see `use_lab`.

    Raises:
        NoSuchLabError: there is no such file.
        InputError: see `use_lab`.
    """
    if name == VIRTUAL_NAME:
        if phone:
            raise InputError(f"--phone {phone}: the virtual lab has one phone, without a name. Add --lab FILE")
        return VIRTUAL
    path = Path(name).expanduser()
    path = path if path.is_absolute() else folder / path
    if not path.is_file():
        raise NoSuchLabError(
            f"lab {name!r}: no such file: {path}. Allowed: {VIRTUAL_NAME} (the lab on this machine alone), or the path "
            "of a lab file"
        )
    return use_lab(path, phone)
