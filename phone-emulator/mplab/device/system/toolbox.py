"""Fill the device's ``/system/bin``."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from mplab.base.programs import IP, NFT, SS, Program

MKSH = Program("mksh", ("mksh",), (), "mksh", "the shell of the emulated device: Android's own")
BUSYBOX = Program("busybox", ("busybox",), (), "busybox-static", "small commands of the emulated device")
APPLET = Program(
    "applet",
    (str(Path(__file__).resolve().parents[4] / "build" / "bin" / "applet"),),
    ("--version",),
    "",
    "commands of the emulated device",
)
SETPRIV = Program("setpriv", ("setpriv",), ("--version",), "util-linux", "takes rights from the device's shell")
PIVOT_ROOT = Program("pivot_root", ("pivot_root",), ("--version",), "util-linux", "the device's root folder")
NEEDED = (MKSH, BUSYBOX, APPLET, SETPRIV, PIVOT_ROOT, IP)

_TOYBOX_NAMES = (
    "[ ascii base64 basename bc bzcat cal cat chgrp chmod chown chroot cksum clear cmp comm cp cpio cut dc dd "
    "diff dirname dmesg dos2unix du echo ed egrep env expand expr factor fallocate false fgrep find flock fold "
    "free fsync getopt grep groups gunzip gzip head hexdump hostname ifconfig install kill killall less link "
    "ln logname losetup ls lsof mkdir mkfifo mknod mktemp more mount mountpoint mv nc netcat netstat nice nl "
    "nohup nproc nsenter od paste patch pgrep pidof ping ping6 pkill printenv printf pwd readlink realpath "
    "renice rev rm rmdir sed seq setsid sha1sum sha256sum sha512sum md5sum shred sleep sort split stat strings "
    "stty sum sync tac tail tar tee test time timeout top touch tr traceroute traceroute6 true truncate tty "
    "umount uname uniq unix2dos unlink unzip uptime usleep uudecode uuencode vi vmstat watch wc which xargs "
    "xxd yes zcat awk df date "
)
_TOYBOX = _TOYBOX_NAMES.split()
"""Commands that toybox and a few other programs (awk, ping, bc) implement on Android; here busybox does."""

_REAL = (
    "ip",
    "ss",
    "nft",
    "iptables",
    "ip6tables",
    "iptables-save",
    "ip6tables-save",
    "tcpdump",
    "tc",
    "sysctl",
    "ethtool",
    "curl",
    "iperf3",
)
"""Programs of this machine that the device also has, if they are installed."""

_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
_TOYBOX_SCRIPT = """#!/system/bin/sh
if [ $# = 0 ]; then echo {names}; exit 0; fi
case " {names} " in
  *" $1 "*) exec /system/lib/busybox "$@";;
esac
echo "toybox: Unknown command $1 (see \\"toybox --help\\")" >&2
exit 127
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


def fill(folder: Path, *, commands: Iterable[str], mptcp: str) -> None:
    """Make ``/system/bin`` (`folder`/bin) and ``/system/lib`` (`folder`/lib).

    Args:
        folder: target folder.
        commands: names that the device's own process answers; they take precedence.
        mptcp: Multipath TCP that `ip` knows: ``none``, ``upstream`` or ``out-of-tree``.
    """
    programs, libraries = folder / "bin", folder / "lib"
    for made in (programs, libraries):
        made.mkdir()
    shutil.copy(MKSH.path().resolve(), programs / "sh")
    shutil.copy(APPLET.path(), programs / "applet")
    shutil.copy(BUSYBOX.path().resolve(), libraries / "busybox")
    applets = set(_applets())
    for name in _TOYBOX:
        if name in applets:
            (programs / name).symlink_to("/system/lib/busybox")
    _script(programs / "toybox", _TOYBOX_SCRIPT.format(names=" ".join(sorted({*_TOYBOX} & applets))))
    for name in (*_REAL, *(name for name in _TOYBOX if name not in applets)):
        if found := shutil.which(name, path=_SYSTEM_PATH):
            _link(programs / name, Path(found).resolve())
    if mptcp != "upstream":
        (programs / "ip").unlink(missing_ok=True)
        multipath = _MULTIPATH if mptcp == "out-of-tree" else ""
        _script(programs / "ip", _PLAIN_IP.format(ip=IP.path().resolve(), multipath=multipath))
    for name in commands:
        _link(programs / name, Path("applet"))


def _applets() -> list[str]:
    done = subprocess.run([str(BUSYBOX.path()), "--list"], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.split()


def _link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


__all__ = ["APPLET", "BUSYBOX", "MKSH", "NEEDED", "NFT", "PIVOT_ROOT", "SETPRIV", "SS", "fill"]
