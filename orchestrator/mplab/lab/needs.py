"""What a lab file needs of this machine, beside what every lab needs."""

from mplab.base import programs
from mplab.base.programs import ADB, Program
from mplab.device.android.model import PhoneModel, load_phone
from mplab.device.system.toolbox import NEEDED as DEVICE_PROGRAMS
from mplab.drivers.phone.kernel import KernelMptcp, PhoneFacts
from mplab.drivers.shaper.virtual.image import kernel_release
from mplab.drivers.transport import DRIVERS
from mplab.userfiles.labuse import LabUse

DEFAULT_MODEL = "android-13"
"""Of an emulated phone whose lab file names none."""


def programs_of_lab(use: LabUse) -> list[Program]:
    """The programs that virtual routers and emulated phones are made of, when it has some.

    Raises:
        LabNotReadyError: the user-mode kernel is there, but its modules are not.
    """
    found = [*DEVICE_PROGRAMS, ADB] if use.kind == "emulated" else [ADB] if use.real else []
    if not use.virtual_routers():
        return found
    if programs.UML.find() is not None:
        kernel_release()
    return [*found, *programs.OF_VIRTUAL_ROUTER]


def phone_model(use: LabUse) -> PhoneModel | None:
    """What the emulated phone of a lab is; None: it has none."""
    if use.android is None or use.kind != "emulated":
        return None
    return load_phone(use.android.model or DEFAULT_MODEL)


def missing_on_phone(use: LabUse, transport: str) -> str:
    """Return why the phone of a lab cannot run a transport, whatever this machine can, or ""."""
    model = None if use.unrooted else phone_model(use)
    kernel = None if model is None else KernelMptcp(model.mptcp_kind, version=model.mptcp.rpartition(" ")[2])
    missing = DRIVERS[transport].missing_on_phone(PhoneFacts(rooted=not use.unrooted, kernel=kernel))
    described = "" if model is None else f" ({model.model}, Android {model.android})"
    return f"phone '{use.phone}'{described} {missing}" if missing else ""


def describe_image() -> dict[str, str]:
    """Versions of what a virtual router is made of: kernel, tc, busybox, dropbear."""
    return {
        "kernel": kernel_release(),
        **{program.name: program.version() for program in (programs.TC, programs.BUSYBOX, programs.DROPBEAR)},
    }
