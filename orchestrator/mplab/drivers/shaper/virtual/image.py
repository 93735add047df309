"""Build the root file system of a virtual router from this machine's busybox, dropbear, iproute2 and kernel modules.

The layout of the file system is that of OpenWrt: ``/etc/init.d`` with ``rc.common``, ``/tmp`` and ``/var`` in memory,
and small replacements for ``uci`` and ``wifi``.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import LabNotReadyError
from mplab.base.packages import install
from mplab.base.programs import BUSYBOX, DROPBEAR, DROPBEARKEY, ETHTOOL, TC, Program

MODULES = Path("/usr/lib/uml/modules")
"""Folder of the user-mode kernel's modules: one subfolder, named after its release."""

_ROOT = Path(__file__).parent / "root"
_FOLDERS = (
    "bin",
    "dev",
    "etc/config",
    "etc/dropbear",
    "etc/rc.d",
    "lib",
    "proc",
    "root/.ssh",
    "sbin",
    "sys",
    "tmp",
    "usr/sbin",
)
_TABLES = ("usr/lib/tc/*.dist", "usr/lib/*/tc/*.dist")
"""Patterns of tc's tables of delay distributions."""

WANTED_MODULES = (
    "act_mirred", "cls_u32", "ifb", "sch_cake", "sch_codel", "sch_fq", "sch_fq_codel", "sch_htb", "sch_ingress",
    "sch_netem",
)  # fmt: skip


@dataclass(frozen=True)
class Port:
    """An interface of a virtual router.

    Attributes:
        name: name of the interface in the router.
        address: IPv4 address with prefix length.
        mac: hardware address.
        plug: option of the user-mode kernel that connects the interface to the host: ``transport=raw,ifname=wlan``.
    """

    name: str
    address: str
    mac: str
    plug: str


def build(
    root: Path,
    *,
    client_key: str,
    ports: Sequence[Port],
    commands: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> str:
    """Make the root file system of a virtual router in the folder `root`.

    Args:
        root: an empty folder.
        client_key: public key that may log in as root, a line of ``authorized_keys``.
        ports: interfaces of the router; the first one is its radio.
        commands: shell commands to run at the end of each boot.
        options: uci option → value: ``{"wireless.radio0": "wifi-device"}``.

    Returns:
        The router's public host key, ``ssh-ed25519 AAAA…``.

    Raises:
        LabNotReadyError: a program or the user-mode kernel's modules are not installed, or no host key was made.
    """
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True)
    (root / "root").chmod(0o700)
    _copy_program(root, BUSYBOX, "bin/busybox")
    subprocess.run([str(BUSYBOX.path()), "--install", "-s", str(root / "bin")], check=True)
    for link in (root / "bin").iterdir():
        if link.is_symlink():
            link.unlink()
            link.symlink_to("/bin/busybox")
    (root / "var").symlink_to("tmp")
    for name in ("init", "modprobe"):
        (root / "sbin" / name).symlink_to("/bin/busybox")
    _copy_program(root, DROPBEAR, "usr/sbin/dropbear")
    _copy_program(root, TC, "sbin/tc")
    _copy_program(root, ETHTOOL, "usr/sbin/ethtool")
    for table in (path for pattern in _TABLES for path in Path("/").glob(pattern)):
        copy = root / table.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(table, copy)
    _copy_modules(root)
    shutil.copytree(_ROOT, root, dirs_exist_ok=True)
    keys = root / "root/.ssh/authorized_keys"
    keys.write_text(client_key + "\n")
    keys.chmod(0o600)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/shells").write_text("/bin/sh\n")
    lines = [f"vec{number} {port.name} {port.address}" for number, port in enumerate(ports)]
    (root / "etc/ports").write_text("".join(f"{line}\n" for line in lines))
    (root / "etc/rc.local").write_text("".join(f"{command}\n" for command in commands))
    for option, value in (options or {}).items():
        (root / "etc/config" / option).write_text(f"{value}\n")
    return new_host_key(root)


def new_host_key(root: Path) -> str:
    """Make a new host key in the router's root file system `root`; return its public half, ``ssh-ed25519 AAAA…``.

    Raises:
        LabNotReadyError: ``dropbearkey`` printed no public key.
    """
    file = root / "etc/dropbear/dropbear_ed25519_host_key"
    file.unlink(missing_ok=True)
    argv = [str(DROPBEARKEY.path()), "-t", "ed25519", "-f", str(file)]
    output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    match = re.search(r"^(ssh-ed25519 \S+)", output, re.MULTILINE)
    if match is None:
        raise LabNotReadyError(f"dropbearkey printed no public key: {output.strip()}")
    return match[1]


def kernel_release() -> str:
    """Return the release of the user-mode kernel: the name of its folder in `MODULES`.

    Raises:
        LabNotReadyError: no modules of a user-mode kernel are installed.
    """
    releases = sorted(path.name for path in MODULES.iterdir()) if MODULES.is_dir() else []
    if not releases:
        raise LabNotReadyError(f"no modules of the user-mode kernel in {MODULES}: {install('user-mode-linux')}")
    return releases[-1]


def _copy_program(root: Path, program: Program, target: str) -> None:
    path = program.path()
    shutil.copy(path, root / target)
    libraries = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(?:=> )?(/\S+) \(0x", libraries):
        copy = root / library.lstrip("/")
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(library).resolve(), copy)


def _copy_modules(root: Path) -> None:
    source = MODULES / kernel_release()
    target = root / "lib/modules" / source.name
    target.mkdir(parents=True)
    for name in WANTED_MODULES:
        for file in source.rglob(f"{name}.ko"):
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    for file in source.glob("modules.*"):
        shutil.copy(file, target)
