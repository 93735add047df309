"""Machines that shape paths of phones: kinds of shapers, and the machines that a lab file names."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, Generic, Literal, TypeVar, Union

from pydantic import BaseModel, BeforeValidator, Discriminator, Tag

from mplab.base.drivers import Drivers
from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import SHAPERS
from mplab.base.suggest import unknown
from mplab.format.abilities import Abilities
from mplab.userfiles.labs.machine_fields import MachineFile
from mplab.userfiles.strict.check import tag_of

Section = Literal["routers", "servers", "phones", ""]
"""Section of a lab file with the entries of a kind; "": the kind has no entries, like a link emulator."""
_SINGULAR: Mapping[Section, str] = {"routers": "router", "servers": "server", "phones": "phone", "": ""}

Settings_co = TypeVar("Settings_co", bound=BaseModel, covariant=True)


class ShaperKind:
    """The part of a shaper's driver that is needed to read lab files; `mplab.drivers.shaper.driver` adds the rest.

    Attributes:
        name: name under which the driver is registered, the value of `driver` in a lab file.
        title: description in messages: ``a router with OpenWrt, over SSH``.
        section: section of the lab file with its entries.
        settings: model of one entry; `BaseModel` when the kind has no entries.
        method: shaping method, as in ``cell.json``: ``tc``.
        abilities: limits of the link conditions that the shaper can make.
        inside: True if a virtual lab boots the machine inside its namespaces.
        root_shell: True if its settings are the value of a phone's key `root_shell`.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str]
    section: Section
    settings: type[BaseModel]
    method: str
    abilities: Abilities
    inside: bool = False
    root_shell: bool = False


_KINDS = Drivers(SHAPERS, ShaperKind)


@dataclass(frozen=True)
class AttachedPath:
    """A path of a phone that a machine shapes.

    Attributes:
        phone: name of the phone in the lab file.
        interface: interface of the phone: ``wlan0``.
        at: interface of the machine.
        mac: hardware address of the phone, as the machine sees it, or "".
        ip: IP address of the phone, as the machine sees it, or "". Without both, all packets at `at` are shaped.
        at_phone: True if the machine is the phone itself.
    """

    phone: str
    interface: str
    at: str
    mac: str = ""
    ip: str = ""
    at_phone: bool = False

    @property
    def address(self) -> str:
        """Address of the phone, as the machine sees it: ``10.0.0.2``, ``02:…``, or ""."""
        return self.mac or self.ip


@dataclass(frozen=True)
class ShapingMachine(Generic[Settings_co]):
    """A machine of a lab file that shapes paths of phones.

    Attributes:
        kind: name of the machine's driver.
        section: section of the lab file with the machine's entry.
        name: name in the lab file.
        settings: entry of the machine.
        paths: paths that the machine shapes.
    """

    kind: str
    section: Section
    name: str
    settings: Settings_co
    paths: tuple[AttachedPath, ...] = ()

    @property
    def label(self) -> str:
        """Name for messages: ``router wifi``, ``server proxy``, ``phone phone-1``."""
        return f"{_SINGULAR[self.section]} {self.name}"

    @property
    def shaped_interface(self) -> str:
        """Interface of the machine that is shaped if a phone's path names none; "": the path must name one."""
        return self.settings.shaped_interface if isinstance(self.settings, MachineFile) else ""

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Interfaces of the machine that are shaped, each once; if it has no paths, its default interface."""
        used = [path.at for path in self.paths] or [self.shaped_interface]
        return tuple(filter(None, dict.fromkeys(used)))

    def paths_of(self, phone: str) -> tuple[AttachedPath, ...]:
        """Return the paths of one phone that the machine shapes."""
        return tuple(path for path in self.paths if path.phone == phone)

    @property
    def inside(self) -> bool:
        """Return whether a virtual lab boots the machine inside its namespaces."""
        return shaper_kind(self.kind).inside


def shaper_kind(name: str) -> ShaperKind:
    """Return the kind of shaper with this name; import it if necessary.

    Raises:
        InputError: no kind has this name.
        LabNotReadyError: the driver cannot be imported, or is no `ShaperKind` of this name.
    """
    return _KINDS.load(name)


@cache
def kinds_of(section: Section) -> Mapping[str, ShaperKind]:
    """Return name → kind for the kinds of shaper with entries in a section; only those that can be imported."""
    return {name: kind for name, kind in _KINDS.importable().items() if kind.section == section}


def emulator() -> ShaperKind:
    """Return the link emulator, which shapes those paths of a virtual lab for which the lab file names no machine.

    Raises:
        LabNotReadyError: no link emulator is registered, or it cannot be imported.
    """
    for kind in kinds_of("").values():
        return kind
    raise LabNotReadyError(f"no link emulator is registered in {SHAPERS.group}. Install mplab again")


def root_shell_kind() -> ShaperKind:
    """Return the kind of shaper that a phone's key `root_shell` describes.

    Raises:
        LabNotReadyError: no such kind is registered, or it cannot be imported.
    """
    for kind in kinds_of("phones").values():
        if kind.root_shell:
            return kind
    raise LabNotReadyError(f"no shaper for 'root_shell' is registered in {SHAPERS.group}. Install mplab again")


def known_driver(section: Section) -> BeforeValidator:
    """Return a validator for the key `driver`: its value must be the name of a registered driver of `section`.

    Only the model whose `driver` has a default needs the validator: `entry_type` passes unknown drivers to that model.
    """

    def check(value: object) -> object:
        names = kinds_of(section)
        if isinstance(value, str) and value not in names:
            raise ValueError(_why_not(value, names))
        return value

    return BeforeValidator(check)


def _why_not(name: str, names: Mapping[str, ShaperKind]) -> str:
    if name in SHAPERS:
        try:
            shaper_kind(name)
        except LabNotReadyError as error:
            return str(error)
    return unknown("driver", name, names)


def entry_type(section: Section) -> object:
    """Return the type, for pydantic, of an entry in a section: the model of the kind that the entry's `driver` names.

    An entry with an unknown driver, or without one, is validated by the model whose `driver` has a default.
    """
    models = {name: kind.settings for name, kind in kinds_of(section).items()}
    default = next(model for model in models.values() if not model.model_fields["driver"].is_required())

    def tag(value: object) -> str:
        driver = value.get("driver") if isinstance(value, dict) else None
        if isinstance(value, MachineFile):
            driver = value.driver
        return tag_of(models.get(driver, default) if isinstance(driver, str) else default)

    if len(models) == 1:
        return default
    tagged = tuple(Annotated[model, Tag(tag_of(model))] for model in models.values())
    return Annotated[Union[tagged], Discriminator(tag)]  # noqa: UP007 - made when the drivers are known


@cache
def abilities() -> Mapping[str, Abilities]:
    """Return name → limits for each kind of shaper that can be imported."""
    return {name: kind.abilities for name, kind in _KINDS.importable().items()}
