"""Install and remove the dead-man's switch of an OpenWrt router: it undoes mplab's changes if the heartbeat stops."""

import hashlib
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.tc.guard import SCRIPT, Holder, holder
from mplab.drivers.shaper.tc.shell import quote

if TYPE_CHECKING:
    from mplab.drivers.shaper.tc.ssh import SshConnection

INIT_SCRIPT = SCRIPT.with_name("mplab-guard.init")
INSTALLED = {
    "/usr/sbin/mplab-guard": SCRIPT,
    "/etc/init.d/mplab-guard": INIT_SCRIPT,
    "/lib/upgrade/keep.d/mplab-guard": SCRIPT.with_name("mplab-guard.keep"),
}
"""Path on the router → file in mplab that is copied there."""

STATE = "/tmp/mplab"  # noqa: S108 - on the router, where it is memory


@dataclass(frozen=True)
class GuardState:
    """State of the dead-man's switch on a router, and the router's holder.

    Attributes:
        installed: all files of the switch exist on the router and match this version of mplab.
        files: files of the switch that exist on the router.
        running: the switch runs now.
        enabled: the switch starts at boot.
        owner: name of the hold on the router (`Owner.token`); "": no one holds the router.
        silent_s: time since the owner's last heartbeat, s; 0 without owner.
    """

    installed: bool
    files: tuple[str, ...]
    running: bool
    enabled: bool
    owner: str = ""
    silent_s: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the fields as a dictionary for the option ``--json``."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the state as text: ``dead-man's switch installed, runs, started at boot; held by nobody``."""
        if not self.files:
            return "nothing of mplab is installed"
        version = "installed" if self.installed else "another version is installed"
        running = "runs" if self.running else "does not run"
        boot = f"{'' if self.enabled else 'not '}started at boot"
        return f"dead-man's switch {version}, {running}, {boot}; {Holder(self.owner, self.silent_s)}"


_SHOW = """
command -v md5sum >/dev/null || echo lacks=md5sum
for file in "$@"; do [ -f "$file" ] && echo "file=$file $(md5sum <"$file" | cut -d' ' -f1)"; done
read -r pid 2>/dev/null </var/run/mplab-guard.pid && kill -0 "$pid" 2>/dev/null && echo running=1
/etc/init.d/mplab-guard enabled 2>/dev/null && echo enabled=1
true
"""


def show(ssh: "SshConnection") -> GuardState:
    """Return the state of the dead-man's switch on the router, and the router's holder.

    Raises:
        LabNotReadyError: the router has no ``md5sum``, with which the installed files are compared.
    """
    output = ssh.script(_SHOW, *INSTALLED).stdout
    if "lacks=md5sum" in output:
        raise LabNotReadyError(
            f"{ssh.name}: no md5sum, with which mplab compares the installed files. It is a part of OpenWrt's busybox"
        )
    files = dict(re.findall(r"^file=(\S+) (\w+)$", output, re.MULTILINE))
    held = holder(ssh, STATE)
    return GuardState(
        installed=files == {path: _md5(source.read_bytes()) for path, source in INSTALLED.items()},
        files=tuple(files),
        running="running=1" in output,
        enabled="enabled=1" in output,
        owner=held.owner,
        silent_s=held.silent_s,
    )


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def install(ssh: "SshConnection") -> bool:
    """Install, start and enable (at boot) the router's dead-man's switch; return False if nothing had to be done.

    Raises:
        LabNotReadyError: a file cannot be written, or the switch does not run afterwards.
    """
    before = show(ssh)
    if before.installed and before.running and before.enabled:
        return False
    if "/etc/init.d/mplab-guard" in before.files:
        ssh.run("/etc/init.d/mplab-guard stop", check=False)
    for path, source in INSTALLED.items():
        _write(ssh, path, source.read_text(encoding="utf-8"))
    ssh.run("/etc/init.d/mplab-guard enable; /etc/init.d/mplab-guard start </dev/null >/dev/null 2>&1")
    after = show(ssh)
    if not (after.installed and after.running and after.enabled):
        raise LabNotReadyError(f"{ssh.name}: the dead-man's switch does not run after its installation: {after}")
    return True


def _write(ssh: "SshConnection", path: str, text: str) -> None:
    """Write `text` as a program on the router, completely or not at all. Raises LabNotReadyError on failure."""
    new = quote(f"{path}.new")
    script = f"mkdir -p {quote(path.rpartition('/')[0])} && cat >{new} && chmod 755 {new} && mv {new} {quote(path)}"
    result = ssh.run(f"{script} || {{ rm -f {new}; false; }}", stdin=text, check=False)
    if result.exit_code != 0:
        why = result.stderr.strip().rpartition(": ")[2]
        raise LabNotReadyError(f"{ssh.name}: {path} could not be written: {why}")


def remove(ssh: "SshConnection") -> bool:
    """Remove the dead-man's switch from the router; return False when nothing was installed.

    Raises:
        LabNotReadyError: an owner holds the router.
    """
    before = show(ssh)
    if before.owner:
        raise LabNotReadyError(f"{ssh.name}: held by {before.owner}. Run 'mplab router restore' first")
    if not before.files:
        return False
    script = """
[ -x /etc/init.d/mplab-guard ] && { /etc/init.d/mplab-guard stop; /etc/init.d/mplab-guard disable; }
rm -f "$@"
"""
    ssh.script(script, *INSTALLED)
    return True


def require(ssh: "SshConnection", lab_word: str = "LAB") -> None:
    """Raise LabNotReadyError unless the dead-man's switch of this mplab version is installed and runs on the router.

    Args:
        ssh: connection to the router.
        lab_word: name of the lab file in the remedy.
    """
    state = show(ssh)
    if not state.installed:
        problem = "another version of the dead-man's switch is" if state.files else "no dead-man's switch is"
        raise LabNotReadyError(f"{ssh.name}: {problem} installed: run 'mplab router install {lab_word}'")
    if not state.running:
        raise LabNotReadyError(
            f"{ssh.name}: its dead-man's switch does not run. Start it: /etc/init.d/mplab-guard start"
        )
