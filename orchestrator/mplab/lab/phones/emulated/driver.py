"""Register the phone kind ``emulated``: an emulated Android device in the virtual lab, driven by adb."""

from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from mplab.base.deferred import deferred
from mplab.base.extras import require
from mplab.base.findings import Finding
from mplab.base.programs import ADB, Program
from mplab.base.suggest import unknown
from mplab.drivers.phone.kernel import KernelMptcp, PhoneFacts
from mplab.drivers.phone.settings import AndroidPhoneFile
from mplab.drivers.transport import DRIVERS
from mplab.format.link import LinkCondition
from mplab.lab.driver import LabSettings, PhoneDriver, missing_on_phone
from mplab.lab.phones.rooting import BY_SOCKS, unrooted_finding, unrooted_refusals
from mplab.lab.phones.virtual.driver import check_node
from mplab.userfiles.labs.lab import LabFile, PhoneFile
from mplab.userfiles.labs.labuse import LabUse
from mplab.userfiles.strict.check import Checker

if TYPE_CHECKING:
    from mplab.device.android.model import PhoneModel
    from mplab.lab.protocol import Lab

DEFAULT_MODEL = "android-13"
"""Model of an emulated phone if the lab file names none."""


def _models() -> list[str]:
    """Return the names of the emulated phone models that mplab has, sorted.

    The device's modules are not imported, because they are slow to import.
    """
    device = find_spec("mplab.device")
    folders = (device and device.submodule_search_locations) or ()
    return sorted(path.stem for folder in folders for path in Path(folder, "phones").glob("*.yaml"))


def _parse_model(value: object) -> str:
    names = _models()
    if isinstance(value, str) and value in names:
        return value
    raise ValueError(unknown("phone", str(value), names))


ModelName = Annotated[str, BeforeValidator(_parse_model), WithJsonSchema({"type": "string", "enum": _models()})]


class EmulatedPhoneFile(AndroidPhoneFile):
    """An emulated phone."""

    model: ModelName | None = Field(
        None, description="Which phone an emulated one is (mplab lab device list); android-13 when left out."
    )


class EmulatedPhones(PhoneDriver):
    """Driver of emulated phones, each in an `EmulatedLab`."""

    name = "emulated"
    title = "an emulated Android device, by adb"
    settings = EmulatedPhoneFile
    android = True

    def open_lab(self, settings: LabSettings) -> "Lab":
        """Return the lab, not yet started, around an emulated phone. See `PhoneDriver`."""
        with deferred("slow to import, needed by few labs"):
            from mplab.lab.phones.emulated.lab import EmulatedLab
        return EmulatedLab(settings)

    def check_use(self, lab: LabFile, name: str, checker: Checker) -> None:
        """Add a problem if the lab file has a key ``proxy``: emulated phones cannot use containers. See `PhoneKind`."""
        if lab.proxy is not None:
            text = f"a run with the emulated phone {name} cannot use containers yet: leave it out"
            checker.add(("proxy",), text)

    def refusals(self, link: LinkCondition, name: str, settings: PhoneFile, shaped: Collection[str]) -> Iterator[str]:
        """Yield the changes of a link condition that need root, if runs use the phone without root. See `PhoneKind`."""
        return unrooted_refusals(link, name) if settings.unrooted else iter(())

    def programs(self, settings: PhoneFile | None) -> list[Program]:
        """Return adb and the programs of the emulated device. See `PhoneDriver`.

        Raises:
            LabNotReadyError: the extra ``phones`` is not installed.
        """
        require("phones")
        with deferred("slow to import"):
            from mplab.device.system.toolbox import programs
        return [*programs(), ADB]

    def facts(self, settings: PhoneFile | None) -> PhoneFacts:
        """Return whether runs use root, from the lab file, and the kernel's MPTCP, from the phone's model.

        See `PhoneDriver`.
        """
        model = model_of(settings)
        kernel = KernelMptcp(model.mptcp_kind, version=model.mptcp.rpartition(" ")[2])
        return PhoneFacts(rooted=settings is None or not settings.unrooted, kernel=kernel)

    def called(self, name: str, settings: PhoneFile | None) -> str:
        """Return the phone's name, model and Android version for messages. See `PhoneDriver`."""
        model = model_of(settings)
        return f"phone '{name}' ({model.model}, Android {model.android})"

    def check(self, lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
        """Check the device's programs, root and Multipath TCP; start nothing. See `PhoneDriver`."""
        yield check_node(name)
        subject, settings = f"phone {name}", lab.phones[name]
        missing = [program for program in self.programs(settings) if program.find() is None]
        for program in missing:
            yield Finding(f"{subject}: {program.name}", "missing", f"not found ({program.purpose})", program.remedy)
        if missing:
            return
        model = model_of(settings)
        if settings.unrooted:
            yield unrooted_finding(name)
        elif model.root == "none":
            remedy = f"choose another model: mplab lab device list; or {BY_SOCKS}"
            yield Finding(f"{subject}: root", "missing", "not rooted: a run needs root for its traffic", remedy)
        for transport, driver in DRIVERS.importable().items():
            if reason := missing_on_phone(LabUse(lab, phone=name), transport):
                yield Finding(
                    f"{subject}: {transport}", "warning", reason, f"cells with {driver.title} will be skipped"
                )
        text = f"{model.model}, Android {model.android}, emulated"
        yield Finding(subject, "ok", text, f"to switch it on: mplab lab up --lab {lab_file}")


def model_name(settings: PhoneFile | None) -> str:
    """Return the name of an emulated phone's model: that in the lab file, or `DEFAULT_MODEL`."""
    return (settings.model if isinstance(settings, EmulatedPhoneFile) else None) or DEFAULT_MODEL


def model_of(settings: PhoneFile | None) -> "PhoneModel":
    """Return the definition of an emulated phone's model: Android version, kernel, root."""
    with deferred("slow to import"):
        from mplab.device.android.model import load_phone
    return load_phone(model_name(settings))


DRIVER = EmulatedPhones()
