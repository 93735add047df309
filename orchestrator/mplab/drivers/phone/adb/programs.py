"""Find programs on the phone; copy mplab's own programs to it."""

import hashlib
import shlex
from collections.abc import Callable
from pathlib import Path

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.places import BIN
from mplab.base.programs import LINKEM, MPFLEX, MPTRACE, Program
from mplab.drivers.phone.adb.link import Link

FOLDER = "/data/local/tmp/mplab"
"""mplab's folder on the phone: adb's shell user may write there and run programs from it."""

BROUGHT = (LINKEM, MPFLEX, MPTRACE)
"""mplab's own programs, which are copied to the phone."""

_MACHINES = {0x03: "x86", 0x28: "armeabi-v7a", 0x3E: "x86_64", 0xB7: "arm64-v8a"}
"""``e_machine`` of ELF files (elf.h) → ABI of Android."""


def abi_of(path: Path) -> str:
    """Return the ABI of a program; "" when it is not an ELF file, or is for a processor without an Android ABI."""
    with path.open("rb") as file:
        head = file.read(20)
    return _MACHINES.get(int.from_bytes(head[18:20], "little"), "") if head[:4] == b"\x7fELF" else ""


def host_file(program: Program, abi: str, label: str) -> Path:
    """Return the host file of a program built for an ABI, e.g. ``build/bin/arm64-v8a/mpflex``.

    Raises:
        LabNotReadyError: the program is not built for this ABI; the message states how to build it.
    """
    usual = program.find()
    candidates = [BIN / abi / program.name, *([usual] if usual else [])]
    for candidate in candidates:
        if candidate.is_file() and abi_of(candidate) == abi:
            return candidate
    available = f"{usual} is for {abi_of(usual) or 'something else'}" if usual else "it is not built"
    how = f"run 'make android ANDROID_ABI={abi}'" if abi in _MACHINES.values() else "there is no build for it"
    raise LabNotReadyError(f"{label}: {program.name} for {abi or 'an unknown ABI'} is needed, and {available}: {how}")


class PhonePrograms:
    """Finds programs on one phone, and remembers their paths.

    Args:
        link: connection to the phone.
        push: copies a host file to a path on the phone, as adb's shell user.
    """

    def __init__(self, link: Link, push: Callable[[Path, str], None]) -> None:
        self._link = link
        self._push = push
        self._known: dict[str, str] = {}
        self._abis: tuple[str, ...] = ()

    def path(self, program: Program) -> str:
        """Return the path of a program on the phone; copy it first when it is one of mplab's.

        Raises:
            LabNotReadyError: the phone does not have the program, or it is not built for the phone's ABI.
            DeviceError: the program could not be copied.
        """
        if program.name not in self._known:
            self._known[program.name] = self._bring(program) if program in BROUGHT else self._find(program)
        return self._known[program.name]

    def forget(self) -> None:
        """Discard the known paths; call it when programs on the phone may have changed, e.g. after a reboot."""
        self._known.clear()

    @property
    def abis(self) -> tuple[str, ...]:
        """ABIs that the phone supports, the preferred one first."""
        if not self._abis:
            text = self._link.run("getprop ro.product.cpu.abilist; getprop ro.product.cpu.abi").stdout.decode()
            self._abis = tuple(dict.fromkeys(text.replace(",", " ").split()))
        return self._abis

    def _bring(self, program: Program) -> str:
        abi = self.abis[0] if self.abis else ""
        source = host_file(program, abi, self._link.label)
        target = f"{FOLDER}/bin/{program.name}"
        if self._sum(target) != (wanted := hashlib.sha256(source.read_bytes()).hexdigest()):
            self._link.run(f"mkdir -p {FOLDER}/bin && rm -f {target} {target}.new")
            self._push(source, f"{target}.new")
            if (arrived := self._sum(f"{target}.new")) != wanted:
                raise DeviceError(self._link.label, f"{target} arrived with checksum {arrived}, not {wanted}")
            self._link.run(f"chmod 755 {target}.new && mv {target}.new {target}")
        return target

    def _sum(self, path: str) -> str:
        words = self._link.run(f"sha256sum {path} 2>/dev/null").stdout.decode().split()
        return words[0] if words else ""

    def _find(self, program: Program) -> str:
        for name in dict.fromkeys(Path(candidate).name for candidate in program.candidates):
            path = self._link.run(f"command -v {shlex.quote(name)}").stdout.decode().strip()
            if path:
                return path
        raise LabNotReadyError(f"{self._link.label}: has no {program.name} ({program.purpose})")
