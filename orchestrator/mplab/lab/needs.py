"""What a lab file needs of this machine, beside what every lab needs."""

from mplab.base.programs import ADB, Program
from mplab.device.android.model import PhoneModel, load_phone
from mplab.device.system.toolbox import NEEDED as DEVICE_PROGRAMS
from mplab.drivers.shaper.driver import inside_driver_of
from mplab.drivers.transport.mptcp import NO_SECOND_SUBFLOW
from mplab.userfiles.labuse import LabUse

DEFAULT_MODEL = "android-13"
"""Of an emulated phone whose lab file names none."""


def programs_of_lab(use: LabUse) -> list[Program]:
    """The programs that virtual routers and emulated phones are made of, when it has some.

    Raises:
        LabNotReadyError: the programs of a virtual router are there, but another of its parts is not.
    """
    found = [*DEVICE_PROGRAMS, ADB] if use.kind == "emulated" else [ADB] if use.real else []
    for machine in use.inside().values():
        driver = inside_driver_of(machine)
        if all(program.find() is not None for program in driver.programs):
            driver.describe()
        found += driver.programs
    return found


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
