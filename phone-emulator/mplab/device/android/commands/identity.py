"""Answer ``id``, ``uname``, ``date``, ``reboot``, ``getenforce`` and similar commands."""

import asyncio
import os
import re
import time

from mplab.device.android.android import Android, Command
from mplab.device.calls import CommandCall, CommandError
from mplab.device.system.system import kill_group

_SHELL_GROUPS = (
    "1004(input),1007(log),1011(adb),1015(sdcard_rw),1028(sdcard_r),1078(ext_data_rw),1079(ext_obb_rw),"
    "3001(net_bt_admin),3002(net_bt),3003(inet),3006(net_bw_stats),3009(readproc),3011(uhid)"
)
_SET_TIME = re.compile(r"@(\d+)(\.\d+)?")


async def _id(_device: Android, call: CommandCall) -> int:
    uid = 0 if call.root else call.uid or 2000
    name = {0: "root", 2000: "shell"}.get(uid, f"u0_a{uid - 10000}")
    if call.argv[1:] == ["-u"]:
        await call.out(f"{uid}\n")
    elif call.argv[1:] == ["-un"]:
        await call.out(f"{name}\n")
    elif call.argv[1:] == ["-Z"]:
        await call.out(f"{_context(uid, call)}\n")
    else:
        groups = "0(root)" if uid == 0 else f"2000(shell),{_SHELL_GROUPS}"
        await call.out(f"uid={uid}({name}) gid={uid}({name}) groups={groups} context={_context(uid, call)}\n")
    return 0


def _context(uid: int, call: CommandCall) -> str:
    if uid == 0:
        return call.env.get("SECURITY_CONTEXT", "u:r:su:s0")
    return "u:r:shell:s0"


async def _whoami(_device: Android, call: CommandCall) -> int:
    await call.out("root\n" if call.root else "shell\n")
    return 0


async def _uname(device: Android, call: CommandCall) -> int:
    model = device.state.model
    machine = os.uname().machine
    build = "#1 SMP PREEMPT Thu Jun 1 00:00:00 UTC 2023"
    parts = {"s": "Linux", "n": "localhost", "r": model.kernel, "v": build, "m": machine, "o": "Toybox"}
    letters = "".join(word.lstrip("-") for word in call.argv[1:]) or "s"
    printed = "snrvmo" if "a" in letters else letters
    if unknown := set(printed) - set(parts):
        raise CommandError(f"uname: Unknown option '{unknown.pop()}' (see \"uname --help\")")
    await call.out(" ".join(parts[key] for key in "snrvmo" if key in printed) + "\n")
    return 0


async def _date(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    utc = "-u" in words
    now = device.state.now()
    form = "+%a %b %e %H:%M:%S %Z %Y"
    for word in words:
        if word.startswith("+"):
            form = word
        elif match := _SET_TIME.fullmatch(word):
            if not call.root:
                raise CommandError("date: cannot set date: Operation not permitted")
            device.state.clock_offset_s = float(match.group(0)[1:]) - time.time()
            now = device.state.now()
    moment = time.gmtime(now)
    fraction = f"{int(now % 1 * 1e9):09d}"
    text = form[1:].replace("%N", fraction).replace("%s", str(int(now)))
    zone = "UTC" if utc else device.state.properties.get("persist.sys.timezone", "UTC")
    text = text.replace("%Z", zone if zone in {"UTC", "GMT"} else "UTC")
    await call.out(time.strftime(text, moment) + "\n")
    return 0


async def _reboot(device: Android, call: CommandCall) -> int:
    reason = " ".join(call.argv[1:])
    device.reboot(reason if reason != "-p" else "poweroff")
    return 0


async def _getenforce(device: Android, call: CommandCall) -> int:
    await call.out("Permissive\n" if device.state.selinux_permissive else "Enforcing\n")
    return 0


async def _setenforce(device: Android, call: CommandCall) -> int:
    if not call.root:
        raise CommandError("setenforce: Couldn't set enforcing status to '0': Permission denied")
    device.state.selinux_permissive = call.argv[1:] in (["0"], ["Permissive"])
    return 0


async def _multipath(device: Android, call: CommandCall) -> int:
    """Answer ``multipath DEV STATE``, which the phone's script ``ip`` calls for ``ip link set … multipath …``.

    Only phones with the out-of-tree kernel of Multipath TCP have this script.
    """
    if not call.root:
        await call.err("RTNETLINK answers: Operation not permitted\n")
        return 2
    device.state.multipath[call.argv[1]] = call.argv[2]
    return 0


async def _ping(device: Android, call: CommandCall) -> int:
    """Answer ``ping`` with BusyBox's ping. It runs as root, because it does not use ping sockets in every case."""
    process = await device.system.spawn(
        ["/system/lib/busybox", call.argv[0], *call.argv[1:]], uid=0, streams=call.streams
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        kill_group(process)
        raise


COMMANDS: dict[str, Command] = {
    "ping": _ping,
    "ping6": _ping,
    "id": _id,
    "whoami": _whoami,
    "uname": _uname,
    "date": _date,
    "reboot": _reboot,
    "getenforce": _getenforce,
    "setenforce": _setenforce,
    "multipath": _multipath,
}
