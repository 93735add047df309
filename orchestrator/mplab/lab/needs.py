"""What a lab file needs of this machine, beside what every lab needs."""

from mplab.base import programs
from mplab.base.programs import ADB, Program
from mplab.device.android.model import PhoneModel, load_phone
from mplab.device.system.toolbox import NEEDED as DEVICE_PROGRAMS
from mplab.drivers.shaper.virtual.image import kernel_release
from mplab.drivers.transport.mptcp import NO_SECOND_SUBFLOW
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
    """Why the phone of a lab cannot run a transport, whatever this machine can, or ""."""
    if transport == "mptcp" and use.unrooted:
        return f"phone '{use.phone}' is used without root: {NO_SECOND_SUBFLOW}"
    model = phone_model(use)
    if transport != "mptcp" or model is None or model.mptcp_kind == "upstream":
        return ""
    has = (
        "" if model.mptcp_kind == "none" else f", only that of a kernel {model.mptcp}: proxies would not understand it"
    )
    return f"phone '{use.phone}' ({model.model}, Android {model.android}) has no Multipath TCP of Linux 5.6{has}"


def describe_image() -> dict[str, str]:
    """Versions of what a virtual router is made of: kernel, tc, busybox, dropbear."""
    return {
        "kernel": kernel_release(),
        **{program.name: program.version() for program in (programs.TC, programs.BUSYBOX, programs.DROPBEAR)},
    }
