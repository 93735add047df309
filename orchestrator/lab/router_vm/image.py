"""The root file system of the stand-in router: busybox ash, dropbear and iproute2 of this machine, kernel modules."""

import re
import shutil
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parent / "root"
_MODULES = Path("/usr/lib/uml/modules")
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
"""Distributions of delay that tc reads."""

WANTED_MODULES = (
    "act_mirred", "cls_u32", "ifb", "sch_cake", "sch_codel", "sch_fq", "sch_fq_codel", "sch_htb", "sch_ingress",
    "sch_netem",
)  # fmt: skip


def build(root: Path, *, client_key: str) -> str:
    """Make the file system in `root`.

    Args:
        root: an empty folder.
        client_key: public key that may log in as root, a line of ``authorized_keys``.

    Returns:
        The router's host key, as ``ssh-ed25519 AAAA…``.
    """
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True)
    (root / "root").chmod(0o700)
    _copy_program(root, "busybox", "bin/busybox")
    subprocess.run([shutil.which("busybox") or "busybox", "--install", "-s", str(root / "bin")], check=True)
    for link in (root / "bin").iterdir():
        if link.is_symlink():
            link.unlink()
            link.symlink_to("/bin/busybox")
    (root / "var").symlink_to("tmp")
    for name in ("init", "modprobe"):
        (root / "sbin" / name).symlink_to("/bin/busybox")
    _copy_program(root, "dropbear", "usr/sbin/dropbear")
    _copy_program(root, "tc", "sbin/tc")
    _copy_program(root, "ethtool", "usr/sbin/ethtool")
    for table in (found for pattern in _TABLES for found in Path("/").glob(pattern)):
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
    return new_host_key(root)


def new_host_key(root: Path) -> str:
    """Give the router another host key; the public half."""
    file = root / "etc/dropbear/dropbear_ed25519_host_key"
    file.unlink(missing_ok=True)
    made = subprocess.run(
        ["dropbearkey", "-t", "ed25519", "-f", str(file)], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"^(ssh-ed25519 \S+)", made, re.MULTILINE)
    assert found, made
    return found[1]


def _copy_program(root: Path, name: str, target: str) -> None:
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert found, name
    shutil.copy(found, root / target)
    shown = subprocess.run(["ldd", found], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(?:=> )?(/\S+) \(0x", shown):
        copy = root / library.lstrip("/")
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(library).resolve(), copy)


def _copy_modules(root: Path) -> None:
    source = next(_MODULES.iterdir())
    target = root / "lib/modules" / source.name
    target.mkdir(parents=True)
    for name in WANTED_MODULES:
        for file in source.rglob(f"{name}.ko"):
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    for file in source.glob("modules.*"):
        shutil.copy(file, target)
