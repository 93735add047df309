"""Lab files: phones, routers and servers, how to reach them, and which of them shapes each path of each phone."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, model_validator

from mplab.base.paths import INTERFACES
from mplab.base.places import LABS, by_name
from mplab.base.plugins import PHONES
from mplab.base.suggest import unknown
from mplab.format.names import FileModel, Name
from mplab.userfiles.labs.machine_fields import InterfaceName, Ip, Mac, MachineFile
from mplab.userfiles.labs.machines import AttachedPath, Section, ShapingMachine, entry_type, kinds_of, root_shell_kind
from mplab.userfiles.labs.phone import PhoneKind, drivers_text, drivers_that, phone_kind, unknown_driver
from mplab.userfiles.labs.proxyfile import ProxyFile
from mplab.userfiles.labs.proxyfile import entry_type as proxy_type
from mplab.userfiles.strict.check import Checker, check_kind
from mplab.userfiles.strict.yaml import Document, load_yaml

if TYPE_CHECKING:
    RouterEntry: TypeAlias = MachineFile
    ServerEntry: TypeAlias = MachineFile
    RootShell: TypeAlias = BaseModel
    AnyProxyFile: TypeAlias = ProxyFile
else:
    RouterEntry, ServerEntry = entry_type("routers"), entry_type("servers")
    RootShell = root_shell_kind().settings
    AnyProxyFile = proxy_type()


class AttachmentFile(FileModel):
    """Entry of a phone's path in a lab file: the machine that shapes the path, and the interface where it does so."""

    router: Name | None = Field(None, description="One of the routers.")
    server: Name | None = Field(None, description="One of the servers.")
    at: Literal["phone"] | None = Field(None, description="On the phone itself, by its root_shell, or in runs by adb.")
    mac: Mac | None = Field(None, description="The phone's address at the router or server.")
    ip: Ip | None = Field(None, description="The phone's address as the router or server sees it.")
    interface: InterfaceName | None = Field(
        None, description="Of the router or server, when it is another one; of the phone."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(choice is not None for choice in (self.router, self.server, self.at)) != 1:
            raise ValueError("no shaper: one of 'router: NAME', 'server: NAME' and 'at: phone' is needed")
        if self.mac and self.ip:
            raise ValueError("mac and ip: both identify the phone's packets. Give one of them")
        if self.at and (self.mac or self.ip):
            raise ValueError("mac, ip: not with 'at: phone', where everything at the interface is the phone's")
        if self.at and not self.interface:
            raise ValueError("'at: phone' needs the phone's interface; see 'ip link' there, like 'rmnet_data0'")
        return self

    def place(self, phone: str) -> str:
        """Return the name, in the lab file, of the machine that shapes this path of `phone`."""
        return self.router or self.server or phone

    @property
    def section(self) -> Section:
        """Section of the lab file with the entry of the machine that shapes this path: ``routers``."""
        return "routers" if self.router else "servers" if self.server else "phones"

    @property
    def whose(self) -> str:
        """MAC or IP address by which the machine recognizes the phone's packets: ``02:…``, ``10.0.0.2``.

        "": the machine shapes all packets at its interface.
        """
        return self.mac or self.ip or ""


def _parse_driver(value: object) -> object:
    if value is None or (isinstance(value, str) and value in PHONES):
        return value
    raise ValueError(unknown_driver(value))


class PhoneFile(FileModel):
    """Entry of a phone in a lab file."""

    # Keys of all kinds; each kind adds its own: `PhoneKind.settings`.
    driver: Annotated[str | None, BeforeValidator(_parse_driver)] = Field(
        None,
        description="Its kind. Without: shaped by hand.",
    )
    wifi: AttachmentFile | None = Field(None, description="Where its WiFi path is shaped.")
    lte: AttachmentFile | None = Field(None, description="Where its cellular path is shaped.")
    root_shell: RootShell | None = Field(
        None, description="Root shell on the phone; runs with a phone on adb need none."
    )

    @property
    def kind(self) -> PhoneKind | None:
        """Kind of the phone, named by the key `driver`; None: there is no such key, so runs cannot use the phone.

        Raises:
            LabNotReadyError: the kind cannot be imported.
        """
        return phone_kind(self.driver) if self.driver is not None else None

    @property
    def unrooted(self) -> bool:
        """True if runs use the phone without root.

        The traffic of its programs can then not be redirected to the agent, so only programs with a proxy setting
        can use the agent.
        """
        return False

    @property
    def chosen_apps(self) -> Mapping[str, str]:
        """Scenario → chosen app of its ``app.yaml``. A scenario that is not in it uses the first app of its file."""
        return {}

    @property
    def shapes_itself(self) -> bool:
        """Return whether the phone can shape its own paths: it has a root shell, by `root_shell` or by its kind."""
        return self.root_shell is not None or (self.kind is not None and self.kind.own_shell and not self.unrooted)

    def attachments(self) -> dict[str, AttachmentFile]:
        """Return interface of the phone (``wlan0``, ``rmnet0``) → entry of the interface's path, if it has one."""
        return {INTERFACES[path]: attachment for path in INTERFACES if (attachment := getattr(self, path)) is not None}


def _by_driver(value: object) -> object:
    """Validate a phone's entry with the model of its kind.

    An entry with an unknown driver is returned unchanged; the base model then reports the driver.
    """
    driver = value.get("driver") if isinstance(value, dict) else None
    if not isinstance(driver, str) or driver not in PHONES:
        return value
    return phone_kind(driver).settings.model_validate(value)


class LabFile(FileModel):
    """A lab as written in a file."""

    model_config = ConfigDict(title="mplab lab")

    mplab: Literal[1] = Field(description="Format of this file.")
    name: Name = Field(description="Of the lab.")
    routers: dict[Name, RouterEntry] = Field(default_factory=dict, description="The routers, by name.")
    servers: dict[Name, ServerEntry] = Field(default_factory=dict, description="The servers, by name.")
    phones: dict[Name, Annotated[SerializeAsAny[PhoneFile], BeforeValidator(_by_driver)]] = Field(
        default_factory=dict, description="The phones, by name."
    )
    proxy: SerializeAsAny[AnyProxyFile] | None = Field(
        None, description="Proxy and origin services, when they are not the virtual lab's."
    )

    def machines(self) -> dict[str, ShapingMachine[BaseModel]]:
        """Return name → machine for each router, server and phone with `root_shell` in the file."""
        routers = {name: self._machine(entry.driver, "routers", name, entry) for name, entry in self.routers.items()}
        servers = {name: self._machine(entry.driver, "servers", name, entry) for name, entry in self.servers.items()}
        shells = {
            name: self._machine(root_shell_kind().name, "phones", name, phone.root_shell)
            for name, phone in self.phones.items()
            if phone.root_shell is not None
        }
        return {**routers, **servers, **shells}

    def reachable(self) -> dict[str, ShapingMachine[BaseModel]]:
        """Return name → machine for the shaping machines that exist also while no lab runs."""
        return {name: machine for name, machine in self.machines().items() if not machine.inside}

    def inside(self) -> dict[str, ShapingMachine[BaseModel]]:
        """Return name → machine for the shaping machines that a virtual lab boots."""
        return {name: machine for name, machine in self.machines().items() if machine.inside}

    def by_itself(self, phone: str) -> ShapingMachine[BaseModel] | None:
        """Return `phone` as a machine, if it shapes its own paths and has no `root_shell`; otherwise None.

        A phone with `root_shell` is one of `machines`.
        """
        settings = self.phones[phone]
        if settings.driver is None or settings.root_shell is not None:
            return None
        machine = self._machine(settings.driver, "phones", phone, settings)
        return machine if machine.paths else None

    def _machine(self, kind: str, section: Section, name: str, settings: BaseModel) -> ShapingMachine[BaseModel]:
        machine = ShapingMachine(kind, section, name, settings)
        paths = tuple(
            AttachedPath(
                phone,
                interface,
                attachment.interface or machine.shaped_interface,
                attachment.mac or "",
                attachment.ip or "",
                at_phone=attachment.at is not None,
            )
            for phone, file in self.phones.items()
            for interface, attachment in file.attachments().items()
            if attachment.place(phone) == name and attachment.section == section
        )
        return replace(machine, paths=paths)


def load_lab(path: Path) -> LabFile:
    """Read a lab file.

    Raises:
        InputError: the file is wrong. The message has a line for each problem: file, line, value found, allowed values.
    """
    return read_lab(path)[0]


def read_lab(path: Path) -> tuple[LabFile, Document]:
    """Read a lab file, named by its path or, if it comes with mplab, by its name. Return the lab and its document.

    Raises:
        InputError: the file is missing or wrong.
    """
    document = load_yaml(by_name(path, LABS))
    check_kind(document, "lab")
    checker = Checker(document)
    phones_data = document.data.get("phones") if isinstance(document.data, Mapping) else None
    if isinstance(phones_data, Mapping):
        phones = {name: _read_phone(name, value, checker) for name, value in phones_data.items()}
        stubs = {name: {} if isinstance(value, Mapping) else value for name, value in phones_data.items()}
        lab = checker.model(LabFile, {**document.data, "phones": stubs})
        lab = lab.model_copy(update={"phones": phones}) if lab is not None and None not in phones.values() else None
    else:
        lab = checker.model(LabFile, document.data)
    if lab is not None:
        _check(lab, checker)
    checker.raise_problems()
    assert lab is not None  # noqa: S101 - raise_problems has raised otherwise
    return lab, document


def _read_phone(name: str, data: object, checker: Checker) -> PhoneFile | None:
    """Validate a phone's entry with the model of its kind, so that messages list that kind's keys.

    None: the entry is wrong, and its problems were added to `checker`.
    """
    if not isinstance(data, Mapping):
        return None
    driver = data.get("driver")
    if driver is not None and (not isinstance(driver, str) or driver not in PHONES):
        checker.add(("phones", name, "driver"), unknown_driver(driver))
        return None
    model = phone_kind(driver).settings if driver is not None else PhoneFile
    own = {key: value for key, value in data.items() if key in model.model_fields or not _drivers_with(key)}
    for key in data.keys() - own.keys():
        checker.add(("phones", name, key), f"of phones with {drivers_text(_drivers_with(key))} alone")
    return checker.model(model, own, ("phones", name))


def _drivers_with(key: str) -> list[str]:
    return drivers_that(lambda kind: key in kind.settings.model_fields)


def _check(lab: LabFile, checker: Checker) -> None:
    driven = [name for name, phone in lab.phones.items() if phone.driver is not None]
    if not lab.reachable() and not driven and lab.proxy is None:
        checker.add(
            (),
            "nothing shapes: at least one of 'routers', 'servers', a phone's 'root_shell', or a phone with "
            "a 'driver' is needed",
        )
    for name in lab.servers:
        if name in lab.routers:
            checker.add(("servers", name), f"{name!r} is the name of a router already")
    first, *others = lab.inside() or [""]
    for name in others:
        checker.add(("routers", name), f"a lab has one virtual router, and {first!r} is one already")
    for name, phone in lab.phones.items():
        if phone.root_shell is not None and (name in lab.routers or name in lab.servers):
            checker.add(("phones", name), f"{name!r} is the name of a router or server already")
        if not phone.attachments() and name not in driven:
            checker.add(("phones", name), "no path: 'wifi', 'lte' or both are needed")
        if phone.kind is not None:
            if phone.root_shell is not None and not phone.kind.real:
                checker.add(("phones", name, "root_shell"), "only for real phones: leave it out")
            phone.kind.check_file(lab, name, checker)
    _check_attachments(lab, checker)


def _check_attachments(lab: LabFile, checker: Checker) -> None:
    taken: dict[tuple[str, str], dict[str, str]] = {}
    for name, phone in lab.phones.items():
        for path, interface in INTERFACES.items():
            attachment = phone.attachments().get(interface)
            if attachment is None or not _place_is_there(lab, name, path, attachment, checker):
                continue
            where = ("phones", name, path)
            if phone.kind is not None and not phone.kind.real:
                _check_virtual(lab, where, attachment, checker)
            elif attachment.router in lab.inside():
                inside = " and ".join(drivers_that(lambda kind: not kind.real))
                text = f"router '{attachment.router}' is a virtual one, which only {inside} phones pass"
                checker.add((*where, "router"), text)
            else:
                _check_shared(lab, where, attachment, taken, checker)


def _check_virtual(lab: LabFile, where: tuple[str, str, str], attachment: AttachmentFile, checker: Checker) -> None:
    """Check the entry of a virtual phone's path. Its packets stay in the lab, so only a virtual router can shape it."""
    _, phone, path = where
    kind = "router" if attachment.router else "server" if attachment.server else "at"
    if attachment.router not in lab.inside():
        inside = drivers_text([name for name, kind in kinds_of("routers").items() if kind.inside])
        text = (
            f"the packets of the virtual phone {phone} pass a router with {inside} alone; "
            f"without '{path}', the link emulator shapes this path"
        )
        checker.add((*where, kind), text)
        return
    for key in ("mac", "ip", "interface"):
        if getattr(attachment, key) is not None:
            checker.add((*where, key), "at a virtual router the lab knows it: leave it out")


def _check_shared(
    lab: LabFile,
    where: tuple[str, str, str],
    attachment: AttachmentFile,
    taken: dict[tuple[str, str], dict[str, str]],
    checker: Checker,
) -> None:
    """Check that a machine can distinguish the paths of several phones at one of its interfaces.

    `taken` has the paths that were checked before: machine and interface → address → path.
    """
    _, phone, path = where
    machine = attachment.place(phone)
    at = attachment.interface or lab.reachable()[machine].shaped_interface
    others = taken.setdefault((machine, at), {})
    if attachment.whose in others:
        whose = attachment.whose or "everything"
        checker.add(where, f"{whose} at {at} is that of {others[attachment.whose]} already")
    elif others and ("" in others or not attachment.whose):
        checker.add(where, f"shares {at} with {next(iter(others.values()))}: give each of them mac or ip")
    others.setdefault(attachment.whose, f"{phone}.{path}")


def _place_is_there(lab: LabFile, phone: str, path: str, attachment: AttachmentFile, checker: Checker) -> bool:
    at = ("phones", phone, path)
    if attachment.router is not None and attachment.router not in lab.routers:
        checker.add((*at, "router"), unknown("router", attachment.router, lab.routers))
    elif attachment.server is not None and attachment.server not in lab.servers:
        checker.add((*at, "server"), unknown("server", attachment.server, lab.servers))
    elif attachment.at is not None and not lab.phones[phone].shapes_itself:
        by_kind = drivers_text(drivers_that(lambda kind: kind.own_shell))
        there = "is used without root" if lab.phones[phone].unrooted else f"no {by_kind}"
        text = f"{phone} has no 'root_shell' and {there}: one is needed to shape on the phone"
        checker.add((*at, "at"), text)
    else:
        return True
    return False
