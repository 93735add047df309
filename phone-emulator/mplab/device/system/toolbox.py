"""Fill the device's ``/system/bin`` with its commands."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from mplab.base.places import BIN
from mplab.base.programs import IP, Program

MKSH = Program("mksh", ("mksh",), (), "mksh", "the shell of the emulated device: Android's own")
BUSYBOX = Program("busybox", ("busybox",), (), "busybox-static", "commands of the emulated device that toybox lacks")
TOYBOX = Program("toybox", ("toybox",), ("--version",), "toybox", "commands of the emulated device: Android's own")
APPLET = Program(
    "applet",
    (str(BIN / "applet"),),
    ("--version",),
    "",
    "commands of the emulated device",
)
SETPRIV = Program("setpriv", ("setpriv",), ("--version",), "util-linux", "takes rights from the device's shell")
PIVOT_ROOT = Program("pivot_root", ("pivot_root",), ("--version",), "util-linux", "the device's root folder")
NEEDED = (MKSH, BUSYBOX, APPLET, SETPRIV, PIVOT_ROOT, IP)

_TOOL_NAMES = (
    "[ ascii base64 basename bc blkid blockdev bzcat cal cat chattr chgrp chmod chown chroot chrt cksum clear "
    "cmp comm cp cpio cut dc dd devmem df diff dirname dmesg dos2unix du echo ed egrep env expand expr factor "
    "fallocate false fgrep file find flock fmt fold free fsync getconf getopt grep groups gunzip gzip head "
    "hexdump hostname iconv ifconfig inotifyd install ionice iotop kill killall less link ln logname losetup ls "
    "lsattr lsmod lsof lspci lsusb md5sum microcom mkdir mkfifo mknod mkswap mktemp modinfo more mount "
    "mountpoint mv nc netcat netstat nice nl nohup nproc nsenter od paste patch pgrep pidof ping ping6 pkill "
    "pmap printenv printf prlimit pwd pwdx readelf readlink realpath renice rev rm rmdir sed seq setsid sha1sum "
    "sha224sum sha256sum sha384sum sha512sum shred sleep sort split stat strings stty sum swapoff swapon sync "
    "tac tail tar taskset tee test time timeout top touch tr traceroute traceroute6 true truncate tty umount "
    "uname uniq unix2dos unlink unshare unzip uptime usleep uudecode uuencode uuidgen vi vmstat watch wc which "
    "xargs xxd yes zcat awk date getenforce id log ps setenforce whoami "
)
_TOOLS = _TOOL_NAMES.split()
"""Commands that toybox and a few other programs (awk, ping, bc) implement on Android.

On the device each of them is the first of these that exists: the command of this machine's toybox; that of BusyBox,
which has some that Debian's toybox lacks (dd, diff, expr, tr, …); the program of this machine.
"""
_NOT_OF_TOYBOX_NAMES = (
    "chroot chrt env flock ionice nice nohup nsenter prlimit setsid taskset time timeout unshare watch xargs "
    "cp install mv"
)
_NOT_OF_TOYBOX = _NOT_OF_TOYBOX_NAMES.split()
"""Commands of Debian's toybox that the device does not use, because they behave differently from Android's.

Some run another command of toybox without execve(2): for ps and pidof, ``setsid sleep`` stays ``setsid``. Others copy
to a full disk without an error.
"""

_REAL_NAMES = "ip ss nft iptables ip6tables iptables-save ip6tables-save tcpdump tc sysctl ethtool curl iperf3"
_REAL = _REAL_NAMES.split()
"""Programs of this machine that the device uses as its own, if they are installed."""

_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
_TOYBOX_SCRIPT = """#!/system/bin/sh
# The commands of Android's toybox, wherever they are on this device.
if [ $# = 0 ]; then echo {names}; exit 0; fi
case " {names} " in
  *" $1 "*) exec "$@";;
esac
echo "toybox: Unknown command $1 (see \\"toybox --help\\")" >&2
exit 127
"""
_PS = """#!/system/bin/sh
# Without -o, -f or -l, toybox prints other columns on Android than elsewhere.
for word; do
  case $word in -*[oOflZ]*) exec -a ps /system/lib/toybox "$@";; esac
done
exec -a ps /system/lib/toybox -o USER,PID,PPID,VSIZE,RSS,WCHAN:16,ADDR,S,NAME "$@"
"""
_PS_OF_BUSYBOX = """#!/system/bin/sh
# toybox's ps -A -o COLUMN,…; other options are ignored. NAME is the whole command line.
typeset -l columns=user,pid,ppid,vsz,rss,s,name
while [ $# -gt 0 ]; do
  case $1 in -*o) columns=$2; shift;; esac
  shift
done
columns=$(echo $columns | /system/lib/busybox sed -E 's/\\b(name|cmd|cmdline)\\b/args/g; s/\\bs\\b/stat/')
exec /system/lib/busybox ps -o $columns
"""
_PLAIN_IP = """#!/system/bin/sh
# This phone's kernel has no Multipath TCP of Linux 5.6 and later, and its ip does not know it.
for word; do
  case $word in
    -*) ;;
    mptcp) echo 'Object "mptcp" is unknown, try "ip help".' >&2; exit 1;;
    *) break;;
  esac
done
{multipath}exec {ip} "$@"
"""
_MULTIPATH = """# ip of the out-of-tree kernel: ip link set dev DEV multipath on|off|backup
case "$*" in
  *" multipath "*)
    set -- $*
    while [ $# -gt 1 ]; do
      case $1 in dev) dev=$2;; multipath) state=$2;; esac
      shift
    done
    case $state in
      on|off|backup|handover) exec multipath "$dev" "$state";;
    esac
    echo 'Error: argument "'$state'" is wrong: "multipath" value is invalid' >&2
    exit 255;;
esac
"""


def programs() -> list[Program]:
    """Return the programs of this machine that a device uses: `NEEDED`, and toybox unless it is missing or disabled."""
    return [*NEEDED, TOYBOX] if _toybox() else [*NEEDED]


def fill(folder: Path, *, commands: Iterable[str], mptcp: str) -> None:
    """Make the device's ``/system/bin`` and ``/system/lib``, as `folder`/bin and `folder`/lib.

    Args:
        folder: folder in which both are made.
        commands: names of the commands that the emulator's process answers. They replace other commands.
        mptcp: kind of Multipath TCP that the command ``ip`` knows: ``none``, ``upstream`` or ``out-of-tree``.
    """
    binaries, libraries = folder / "bin", folder / "lib"
    for directory in (binaries, libraries):
        directory.mkdir()
    shutil.copy(MKSH.path().resolve(), binaries / "sh")
    shutil.copy(APPLET.path(), binaries / "applet")
    for name in (*_REAL, *_TOOLS):
        if program := shutil.which(name, path=_SYSTEM_PATH):
            _link(binaries / name, Path(program).resolve())
    toybox, busybox = _toybox(), BUSYBOX.path()
    served = {"busybox": (busybox, _served([str(busybox), "--list"]))}
    if toybox:
        served["toybox"] = toybox, _served([str(toybox)]) - {*_NOT_OF_TOYBOX}
    for box, (path, names) in served.items():
        shutil.copy(path.resolve(), libraries / box)
        for name in names & {*_TOOLS}:
            _link(binaries / name, Path("/system/lib", box))
    _script(binaries / "ps", _PS if toybox else _PS_OF_BUSYBOX)
    if mptcp != "upstream":
        multipath = _MULTIPATH if mptcp == "out-of-tree" else ""
        _script(binaries / "ip", _PLAIN_IP.format(ip=IP.path().resolve(), multipath=multipath))
    for name in commands:
        _link(binaries / name, Path("applet"))
    tools = sorted({*_TOOLS} & {path.name for path in binaries.iterdir()})
    _script(binaries / "toybox", _TOYBOX_SCRIPT.format(names=" ".join(tools)))


def _toybox() -> Path | None:
    """Return the path of this machine's toybox; None if it is not installed, or if ``MPLAB_TOYBOX=none`` is set."""
    return None if os.environ.get("MPLAB_TOYBOX") == "none" else TOYBOX.find()


def _served(listing: Sequence[str]) -> set[str]:
    """Return the names of the commands in toybox or BusyBox; the command line `listing` prints them."""
    return set(subprocess.run(listing, capture_output=True, text=True, check=True, timeout=10).stdout.split())


def _link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _script(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # it may be a link to a program of this machine
    path.write_text(text)
    path.chmod(0o755)
