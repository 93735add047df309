"""Write systemd units that start a campaign every day: ``mplab-NAME.service`` and ``mplab-NAME.timer``.

A third unit, ``mplab-NAME-resume.service``, resumes a running campaign after a power loss.

Exports `Nightly` (settings of the units), `Scope`, `units` (their texts), `folder_of`, `install`, `uninstall`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path
from typing import Literal

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.files import explained, replace

Scope = Literal["user", "system"]

_MARK = "# Written by 'mplab campaign install'; 'mplab campaign uninstall' removes it."
_EARLIER_MARK = _MARK.replace("campaign", "nightly")
"""Mark of units that were written before the verb was called ``campaign``."""
_STOP_MIN = 10
_KEPT_VARIABLES = ("MPLAB_BIN", "ANDROID_HOME", "ANDROID_SDK_ROOT", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
"""Environment variables with the locations of lab programs and of files that are kept between runs."""
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def usual_environment() -> dict[str, str]:
    """Return the environment for a campaign that uses this installation of mplab.

    It consists of PATH, with this installation first, and of the variables `_KEPT_VARIABLES` of this process.
    """
    here = (str(Path(sys.executable).parent), *os.environ.get("PATH", "").split(os.pathsep))
    path = [folder for folder in (*here, *_SYSTEM_PATH) if folder.startswith("/")]
    variables = {name: os.environ[name] for name in _KEPT_VARIABLES if os.environ.get(name)}
    return {"PATH": os.pathsep.join(dict.fromkeys(path)), **variables}


def usual_program() -> tuple[str, ...]:
    """Return the command line that runs this installation of ``mplab`` by absolute path.

    It is the command next to this Python interpreter, or this interpreter with ``-m mplab``.
    """
    command = Path(sys.executable).parent / "mplab"
    return (str(command),) if command.is_file() else (sys.executable, "-m", "mplab")


@dataclass(frozen=True)
class Nightly:
    """Settings of the systemd units of a campaign.

    Attributes:
        name: name of the campaign: a-z, 0-9, ``-``.
        file: absolute path of the campaign file.
        at: time of the daily start, by this host's clock.
        runs: absolute path of the folder of the runs.
        campaigns: absolute path of the folder of the campaigns.
        scope: systemd manager that runs the units: ``user``: that of the installing user; ``system``: that of root.
        program: command line of ``mplab``; its first word is an absolute path.
        environment: environment variables of the campaign's process.
    """

    name: str
    file: Path
    at: time
    runs: Path
    campaigns: Path
    scope: Scope = "user"
    program: tuple[str, ...] = field(default_factory=usual_program)
    environment: Mapping[str, str] = field(default_factory=usual_environment)

    @property
    def unit(self) -> str:
        """Return the common start of the units' names: ``mplab-NAME``."""
        return f"mplab-{self.name}"


def units(nightly: Nightly) -> dict[str, str]:
    """Return file name → content of the unit files of a campaign.

    Raises:
        InputError: a path is relative, or has a character that a unit cannot hold.
    """
    for path in (nightly.file, nightly.runs, nightly.campaigns, Path(nightly.program[0])):
        if not path.is_absolute():
            raise InputError(f"{path}: an absolute path is needed")
    if set(nightly.program[0]) & set("\"'\\"):
        raise InputError(f"{nightly.program[0]}: systemd starts no program with quotes or backslashes in its path")
    begin = ("run", str(nightly.file), "--runs", str(nightly.runs))
    resume = ("resume", "--killed", "--of", str(nightly.file))
    target = "default.target" if nightly.scope == "user" else "multi-user.target"
    return {
        f"{nightly.unit}.service": _service(nightly, begin),
        f"{nightly.unit}.timer": _timer(nightly),
        f"{nightly.unit}-resume.service": f"{_service(nightly, resume)}\n[Install]\nWantedBy={target}\n",
    }


def _service(nightly: Nightly, verb: Sequence[str]) -> str:
    program, *first = nightly.program
    arguments = (*first, "campaign", *verb, "--campaigns", str(nightly.campaigns))
    command = " ".join([quoted(program), *(quoted(word, argument=True) for word in arguments)])
    environment = "\n".join(f"Environment={quoted(f'{key}={text}')}" for key, text in nightly.environment.items())
    # These units exist only in the system's manager.
    order = "Wants=network-online.target\nAfter=network-online.target docker.service\n" * (nightly.scope == "system")
    return f"""{_MARK}
[Unit]
Description=mplab campaign {nightly.name}
{order}
[Service]
Type=exec
ExecStart={command}
{environment}
# Interrupted as by Ctrl-C: changes of phones and routers are undone, and 'mplab campaign resume' can continue.
# Only the campaign receives the signal, and sends one to each run. Processes left after {_STOP_MIN} min are killed.
KillSignal=SIGINT
KillMode=mixed
TimeoutStopSec={_STOP_MIN}min
SuccessExitStatus=130
# If the kernel kills a browser for lack of memory, only one cell fails.
OOMPolicy=continue
LimitNOFILE=65536
# Captures and keys do not belong into core dumps.
LimitCORE=0
# The service is not restricted further. Each of these would break labs: PrivateTmp, ProtectSystem (locks and sockets
# are shared with runs that people start), PrivateDevices (tun, USB phones), ProtectKernelTunables, ProtectControlGroups
# (sysctls, containers), RestrictNamespaces, SystemCallFilter (a virtual lab is namespaces), NoNewPrivileges (sudo,
# newuidmap, a browser's sandbox), and options that imply it for a user: LockPersonality, RestrictRealtime,
# RestrictSUIDSGID.
"""


def _timer(nightly: Nightly) -> str:
    return f"""{_MARK}
[Unit]
Description=mplab campaign {nightly.name}, every day at {nightly.at:%H:%M}

[Timer]
OnCalendar=*-*-* {nightly.at:%H:%M}:00
AccuracySec=1s
RandomizedDelaySec=0
# If this host was off at that time, the campaign starts when the host starts.
Persistent=true

[Install]
WantedBy=timers.target
"""


def quoted(text: str, *, argument: bool = False) -> str:
    """Quote `text` as one word of a unit file (systemd.syntax(7), systemd.service(5) "command lines").

    Args:
        text: any text without control characters.
        argument: True if the word is in a command line, but not its first word: systemd expands ``$`` in such words.

    Raises:
        InputError: `text` has a control character.
    """
    if not all(character.isprintable() for character in text):
        raise InputError(f"{text!r}: a systemd unit cannot hold such a character: rename it")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped.replace("$", "$$") if argument else escaped}"'


def folder_of(scope: Scope) -> Path:
    """Return the folder in which the systemd manager of a scope looks for units."""
    if scope == "system":
        return Path("/etc/systemd/system")
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "systemd" / "user"


def install(texts: Mapping[str, str], folder: Path, *, scope: Scope = "user", enable: bool = False) -> tuple[str, ...]:
    """Write unit files atomically. Earlier ones that mplab wrote are replaced.

    Args:
        texts: file name → content, from `units`.
        folder: folder from `folder_of`.
        scope: scope of the systemd manager.
        enable: True: also reload systemd and enable the units.

    Returns:
        The commands that the user must still run to enable the units; none with `enable`.

    Raises:
        InputError: there is a unit of that name that mplab did not write.
        LabNotReadyError: systemctl fails, or does not exist.
        MplabError: a file cannot be written.
    """
    for name in texts:
        _check_ours(folder / name)
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        replace(folder / name, text.encode())
    timers = sorted(name for name in texts if name.endswith(".timer"))
    at_boot = sorted(name for name in texts if name.endswith("-resume.service"))
    commands = [_systemctl(scope, "daemon-reload"), _systemctl(scope, "enable", "--now", *timers)]
    commands += [_systemctl(scope, "enable", *at_boot)] if at_boot else []
    if enable:
        _give(commands)
        return ()
    texts_of = [" ".join(command) for command in commands]
    # Without lingering, a user's units end with the last session.
    return (*texts_of, *(("loginctl enable-linger",) if scope == "user" else ()))


def uninstall(name: str, folder: Path, *, scope: Scope = "user", disable: bool = False) -> tuple[str, ...]:
    """Remove the units of a campaign. A running campaign continues.

    Args:
        name: name of the campaign.
        folder: folder from `folder_of`.
        scope: scope of the systemd manager.
        disable: True: also disable the units, before they are removed.

    Returns:
        The commands that the user must still run to disable the units; none with `disable`.

    Raises:
        InputError: there are no such units, or mplab did not write them.
        LabNotReadyError: systemctl fails, or does not exist.
        MplabError: a file cannot be removed.
    """
    files = [folder / f"mplab-{name}{kind}" for kind in (".timer", ".service", "-resume.service")]
    existing = [file for file in files if file.exists()]
    if not existing:
        raise InputError(f"{folder}: no units of a campaign called {name!r}")
    for file in existing:
        _check_ours(file)
    commands = [_systemctl(scope, "disable", "--now", f"mplab-{name}.timer")]
    if files[-1] in existing:
        commands.append(_systemctl(scope, "disable", files[-1].name))
    reload = _systemctl(scope, "daemon-reload")
    if disable:
        _give(commands)
    for file in existing:
        with explained(file):
            file.unlink()
    if disable:
        _give([reload])
        return ()
    return tuple(" ".join(command) for command in (*commands, reload))


def _check_ours(file: Path) -> None:
    if file.exists() and not file.read_text(encoding="utf-8", errors="replace").startswith((_MARK, _EARLIER_MARK)):
        raise InputError(f"{file}: not written by mplab: not changed")


def _systemctl(scope: Scope, *words: str) -> list[str]:
    return ["systemctl", *(("--user",) if scope == "user" else ()), *words]


def _give(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        program = shutil.which(command[0])
        if program is None:
            raise LabNotReadyError(f"{command[0]}: no such program: this host has no systemd; use cron")
        completed = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
        if completed.returncode:
            raise LabNotReadyError(
                f"{' '.join(command)}: {completed.stderr.strip() or f'exit code {completed.returncode}'}"
            )
