"""Answer ``ps`` and ``app_process``: list processes, start agents of UI frameworks."""

import asyncio
import os
import re
from dataclasses import dataclass

from mplab.device.android.agents import run_agent
from mplab.device.android.android import Android, Command
from mplab.device.calls import Call, CommandError

_PAGE_KIB = 4
_COLUMNS = {
    "USER": (14, False),
    "PID": (5, True),
    "PPID": (5, True),
    "VSZ": (7, True),
    "RSS": (6, True),
    "WCHAN": (16, False),
    "ADDR": (4, True),
    "S": (1, False),
    "NAME": (27, False),
    "ARGS": (27, False),
    "CMD": (27, False),
    "COMM": (15, False),
    "CMDLINE": (27, False),
    "UID": (14, False),
    "STIME": (5, False),
    "TTY": (8, False),
    "TIME": (8, True),
    "C": (2, True),
    "STAT": (4, False),
}
_DEFAULT = ("USER", "PID", "PPID", "VSZ", "RSS", "WCHAN", "ADDR", "S", "NAME")
_FULL = ("UID", "PID", "PPID", "C", "STIME", "TTY", "TIME", "CMD")


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    uid: int
    state: str
    comm: str
    argv: tuple[str, ...]
    size_kib: int
    resident_kib: int

    @property
    def name(self) -> str:
        return self.argv[0] if self.argv else f"[{self.comm}]"

    def column(self, title: str) -> str:
        user = {0: "root", 2000: "shell"}.get(self.uid, f"u0_a{self.uid - 10000}")
        values = {
            "USER": user,
            "UID": user,
            "PID": self.pid,
            "PPID": self.parent,
            "VSZ": self.size_kib,
            "RSS": self.resident_kib,
            "WCHAN": "0",
            "ADDR": "0",
            "S": self.state,
            "STAT": self.state,
            "NAME": self.name.rpartition("/")[2] if self.name.startswith("/") else self.name,
            "ARGS": " ".join(self.argv) or self.name,
            "CMDLINE": " ".join(self.argv) or self.name,
            "CMD": self.name,
            "COMM": self.comm,
            "STIME": "00:00",
            "TTY": "?",
            "TIME": "00:00:00",
            "C": "0",
        }
        return str(values[title])


def _read_processes() -> list[_Process]:
    """Return the processes of the device. Must run in its `FileThread`."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - nothing may be imported here
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:  # noqa: PTH123
                pid, _, rest = file.read().partition(" (")
            with open(f"/proc/{name}/cmdline", "rb") as raw:  # noqa: PTH123
                argv = tuple(part.decode(errors="replace") for part in raw.read().split(b"\0")[:-1])
            uid = os.stat(f"/proc/{name}").st_uid  # noqa: PTH116
        except OSError:
            continue
        comm, _, numbers = rest.rpartition(") ")
        fields = numbers.split()
        sizes = int(fields[20]) // 1024, int(fields[21]) * _PAGE_KIB
        found.append(_Process(int(pid), int(fields[1]), uid, fields[0], comm, argv, *sizes))
    return sorted(found, key=lambda process: process.pid)


async def _ps(device: Android, call: Call) -> int:
    columns: tuple[str, ...] = _DEFAULT
    everything, pids = False, set[int]()
    names: set[str] = set()
    words = call.argv[1:]
    while words:
        word, words = words[0], words[1:]
        if word in {"-o", "-p", "-C"} and words:
            value, words = words[0], words[1:]
            if word == "-o":
                columns = _asked(value)
            elif word == "-p":
                pids |= {int(pid) for pid in re.split(r"[, ]+", value) if pid.isdigit()}
            else:
                names |= set(value.split(","))
        elif word.startswith("-") and set(word[1:]) <= set("AefwWlnT"):
            everything = everything or bool(set(word) & set("Ae"))
            columns = _FULL if "f" in word else columns
        elif not word.isdigit():
            raise CommandError(f"ps: Unknown option '{word}' (see \"ps --help\")")
        else:
            pids.add(int(word))
    processes = await device.system.files(root=True).run(_read_processes)
    shown = [
        process
        for process in processes
        if (process.pid in pids if pids else process.column("NAME") in names if names else everything)
        or (not pids and not names and not everything and process.uid == (0 if call.root else call.uid))
    ]
    await call.out(_table(columns, shown))
    return 0 if shown else 1


def _asked(value: str) -> tuple[str, ...]:
    titles = tuple(name.partition("=")[0].upper() for name in re.split(r"[, ]+", value) if name)
    if unknown := [title for title in titles if title not in _COLUMNS]:
        raise CommandError(f"ps: bad -o {value}@{value.upper().find(unknown[0])}")
    return titles


def _table(columns: tuple[str, ...], processes: list[_Process]) -> str:
    rows = [columns, *(tuple(process.column(title) for title in columns) for process in processes)]
    lines = []
    for row in rows:
        cells = [
            value.rjust(_COLUMNS[title][0]) if _COLUMNS[title][1] else value.ljust(_COLUMNS[title][0])
            for title, value in zip(columns, row, strict=True)
        ]
        lines.append(" ".join(cells).rstrip() + "\n")
    return "".join(lines)


async def _app_process(device: Android, call: Call) -> int:
    """Answer ``CLASSPATH=… app_process DIR MAIN-CLASS ARG…``.

    Raises:
        CommandError: the folder or the class is missing.
    """
    words = call.argv[1:]
    while words and words[0].startswith("-"):
        words = words[1:]
    if len(words) < 2:
        raise CommandError("Usage: app_process [java-options] cmd-dir start-class-name [options]", 255)
    main, arguments = words[1], words[2:]
    classpath = call.env.get("CLASSPATH", "")
    if main not in device.agents or not classpath or not await _exists(device, classpath):
        await call.err(
            f"Error: Could not find class '{main}'\n"
            f"java.lang.ClassNotFoundException: {main}\n"
            f"\tat android.os.RuntimeInit (classpath: {classpath or 'not set'})\nAborted\n"
        )
        return 134
    end = asyncio.ensure_future(call.read_all())
    agent = asyncio.ensure_future(run_agent(device, main, arguments, call.out))
    try:
        # A caller over adb ends the agent by closing the stream.
        await asyncio.wait({agent, end}, return_when=asyncio.FIRST_COMPLETED)
        return agent.result() if agent.done() and not agent.cancelled() else 129
    finally:
        for task in (agent, end):
            task.cancel()


async def _exists(device: Android, path: str) -> bool:
    return await device.system.files(root=True).run(lambda: all(os.path.exists(part) for part in path.split(":")))  # noqa: PTH110


COMMANDS: dict[str, Command] = {"ps": _ps, "app_process": _app_process, "app_process64": _app_process}
