"""Answer ``su`` with the command-line forms of Magisk, SuperSU and AOSP."""

import asyncio
import signal

from mplab.device.android.android import Android, Command
from mplab.device.calls import CommandCall, CommandError
from mplab.device.system.system import kill_group

_USERS = {"root": 0, "0": 0, "shell": 2000, "2000": 2000}
_IGNORED = {"-", "-l", "--login", "-m", "-p", "--preserve-environment", "-mm", "-M", "--mount-master"}


async def _su(device: Android, call: CommandCall) -> int:
    if not device.state.rooted:
        if device.state.model.root == "none":
            raise CommandError("/system/bin/sh: su: inaccessible or not found", 127)
        raise CommandError("Permission denied", 13)
    uid, command = _parse(call.argv[1:])
    if command == ["--version"]:
        await call.out("26.1:MAGISKSU\n")
        return 0
    env = {key: value for key, value in call.env.items() if key not in {"APPLET_APP", "USER", "LOGNAME", "HOME"}}
    if uid == 0:
        env["SECURITY_CONTEXT"] = "u:r:magisk:s0"
    process = await device.system.spawn(
        ["/system/bin/sh", "-c", 'cd "$1" 2>/dev/null; shift; exec "$@"', "su", call.cwd, *command],
        uid=uid,
        env=env,
        streams=call.streams,
    )
    call.handles_signals = True
    passing = asyncio.create_task(_pass_signals(call, process))
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        kill_group(process, signal.SIGHUP)
        raise
    finally:
        passing.cancel()
    return code if code >= 0 else 128 - code


def _parse(words: list[str]) -> tuple[int, list[str]]:
    """Return user id and command from the words after ``su``, e.g. ``-c CMD``, ``root CMD ARG…`` or ``0 -c CMD``.

    Raises:
        CommandError: an option or user is unknown.
    """
    uid, shell = 0, "/system/bin/sh"
    named = False
    while words:
        word, words = words[0], words[1:]
        if word in {"-c", "--command"} and words:
            # For Magisk and SuperSU the rest of the line is the command; for AOSP's su it is one word.
            return uid, [shell, "-c", " ".join(words)]
        if word in {"-v", "-V", "--version"}:
            return uid, ["--version"]
        if word in _IGNORED:
            continue
        if word in {"-s", "--shell"} and words:
            shell, words = words[0], words[1:]
        elif word.startswith("-"):
            raise CommandError(f"su: invalid option -- {word.lstrip('-')[:1]}", 2)
        elif not named and (word in _USERS or word.isdigit()):
            uid, named = _USERS.get(word, int(word) if word.isdigit() else 0), True
        elif named:
            return uid, [word, *words]
        else:
            raise CommandError(f"su: invalid uid/gid '{word}'", 1)
    return uid, [shell]


async def _pass_signals(call: CommandCall, process: asyncio.subprocess.Process) -> None:
    while True:
        kill_group(process, await call.wait_signal())


COMMANDS: dict[str, Command] = {"su": _su}
