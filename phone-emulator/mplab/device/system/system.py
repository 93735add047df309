"""Boot and shut down a device's namespaces, and run programs in them."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from mplab.base.errors import DeviceError
from mplab.base.programs import NSENTER, UNSHARE
from mplab.device.system import toolbox
from mplab.device.system.files import FileThread

SHELL_UID = 2000
"""User id of adb's shell on a phone that is not rooted (``AID_SHELL``)."""
_SHELL_GROUPS = "1004,1007,1011,1015,1028,1078,1079,3001,3002,3003,3006,3009,3011"

_APP_USERS = 1000
"""Number of app users that ``/etc/passwd`` of the device names: ``u0_a0``, …"""

_BOOT_SCRIPT = Path(__file__).with_name("boot.sh")
_BOOT_TIMEOUT_S = 30.0
_SHUTDOWN_TIMEOUT_S = 10.0

ENVIRONMENT = {
    "ANDROID_ASSETS": "/system/app",
    "ANDROID_BOOTLOGO": "1",
    "ANDROID_DATA": "/data",
    "ANDROID_ROOT": "/system",
    "ANDROID_STORAGE": "/storage",
    "EXTERNAL_STORAGE": "/sdcard",
    "HOME": "/",
    "PATH": "/product/bin:/apex/com.android.runtime/bin:/system/bin:/system/xbin:/odm/bin:/vendor/bin:/vendor/xbin",
    "SHELL": "/bin/sh",
    "TERM": "dumb",
    "TMPDIR": "/data/local/tmp",
}


@dataclass(frozen=True)
class SystemSettings:
    """The settings of a device's system.

    Attributes:
        name: host name of the device, and its name in messages.
        commands: names of the commands that the emulator's process answers.
        storage_bytes: size of ``/data``.
        network_pid: id of a process whose network namespace the device uses; None: the device has its own namespace.
        mptcp: kind of Multipath TCP that the device shows: ``none``, ``upstream`` or ``out-of-tree``.
        mptcp_files: name → content of the files in ``/proc/sys/net/mptcp``, if `mptcp` is not ``upstream``.
        resolv_conf: content of the device's ``/etc/resolv.conf``.
    """

    name: str
    commands: Sequence[str] = ()
    storage_bytes: int = 4_000_000_000
    network_pid: int | None = None
    mptcp: str = "upstream"
    mptcp_files: Mapping[str, str] = field(default_factory=dict)
    resolv_conf: str = ""


class System:
    """The system of a device: its namespaces with its processes and files.

    Args:
        settings: settings of the system.
        runtime: empty folder in a file system that disappears with this process.
    """

    def __init__(self, settings: SystemSettings, runtime: Path) -> None:
        self._settings = settings
        self._runtime = runtime
        self._process: asyncio.subprocess.Process | None = None
        self._lifeline = -1
        self._pid = 0
        self._files: dict[int, FileThread] = {}

    @property
    def pid(self) -> int:
        """Return the id of the device's first process, in this process's PID namespace; 0 if the device is down."""
        return self._pid

    @property
    def sockets(self) -> Path:
        """Return the path in this process of the folder that the device sees as ``/dev/socket``."""
        return self._runtime / "socket"

    @property
    def data(self) -> Path:
        """Return the path in this process of the folder that the device sees as ``/data``.

        Do not follow symbolic links in this folder: their targets are paths on the device.
        """
        return self._runtime / "data"

    async def prepare(self) -> None:
        """Create ``/data``, which survives reboots, and the files that every boot copies into the device's root folder.

        Raises:
            DeviceError: ``/data`` cannot be mounted.
        """
        for name in ("root", "socket", "data", "etc", "mptcp"):
            (self._runtime / name).mkdir()
        self.sockets.chmod(0o755)
        await self.resize_data(self._settings.storage_bytes, remount=False)
        toolbox.fill(self._runtime, commands=self._settings.commands, mptcp=self._settings.mptcp)
        etc = self._runtime / "etc"
        (etc / "hosts").write_text("127.0.0.1 localhost\n::1 ip6-localhost\n")
        (etc / "resolv.conf").write_text(self._settings.resolv_conf)
        (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        users = {"root": 0, "shell": SHELL_UID, **{f"u0_a{number}": 10000 + number for number in range(_APP_USERS)}}
        passwd = "".join(f"{name}:x:{uid}:{uid}::/:/system/bin/sh\n" for name, uid in users.items())
        (etc / "passwd").write_text(passwd)
        (etc / "group").write_text("".join(f"{name}:x:{gid}:\n" for name, gid in {**users, "inet": 3003}.items()))
        for name, value in self._settings.mptcp_files.items():
            (self._runtime / "mptcp" / name).write_text(value + "\n")
        self._make_folders()

    async def resize_data(self, size_bytes: int, *, remount: bool = True) -> None:
        """Change the size of ``/data``, or mount it if `remount` is False.

        Raises:
            DeviceError: the mount failed, e.g. because the files in ``/data`` are larger.
        """
        option = f"{'remount,' if remount else ''}mode=0771,size={size_bytes}"
        await self._host(["mount", "-t", "tmpfs", "-o", option, "data", str(self.data)])

    def free_data(self) -> tuple[int, int]:
        """Return the free size and the total size of ``/data``, bytes."""
        status = os.statvfs(self.data)
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize

    async def boot(self) -> None:
        """Start the system, and wait until it has booted. Raises DeviceError; or TimeoutError after 30 s."""
        read_end, self._lifeline = os.pipe()
        pid = self._settings.network_pid
        network = [str(NSENTER.path()), f"--net=/proc/{pid}/ns/net", "--"] if pid else []
        private = [] if pid else ["--net"]
        flags = ["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=SIGKILL"]
        visible = "real" if self._settings.mptcp == "upstream" else "hidden"
        script = ["sh", str(_BOOT_SCRIPT), str(self._runtime / "root"), str(self._runtime), str(read_end)]
        process = await asyncio.create_subprocess_exec(
            *network,
            str(UNSHARE.path()),
            *private,
            *flags,
            "--",
            *script,
            self._settings.name,
            visible,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(read_end,),
            start_new_session=True,
        )
        os.close(read_end)
        self._process = process
        assert process.stdout is not None  # noqa: S101 - PIPE was asked for
        assert process.stderr is not None  # noqa: S101
        line = await asyncio.wait_for(process.stdout.readline(), _BOOT_TIMEOUT_S)
        if line.strip() != b"booted":
            problem = (await asyncio.wait_for(process.stderr.read(), _BOOT_TIMEOUT_S)).decode(errors="replace")
            await self.shut_down()
            raise DeviceError(self._settings.name, "the emulated device could not boot", stderr=problem)
        self._pid = psutil.Process(process.pid).children()[0].pid

    async def shut_down(self) -> None:
        """End all processes of the device."""
        self._pid = 0
        for files in self._files.values():
            files.close()
        self._files.clear()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), _SHUTDOWN_TIMEOUT_S)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
            self._process = None

    def files(self, *, root: bool = False) -> FileThread:
        """Return the thread that accesses the device's files as adb's user or, with `root`, as root.

        Raises:
            DeviceError: the device is down.
        """
        self._check_up()
        uid = 0 if root else SHELL_UID
        if uid not in self._files:
            self._files[uid] = FileThread(self._pid, uid)
        return self._files[uid]

    def argv(self, command: Sequence[str], *, uid: int, terminal: bool = False) -> list[str]:
        """Return the command line of this machine that runs `command` in the system as user `uid`.

        With `terminal`, the standard input of `command` becomes its controlling terminal.
        """
        enter = ["--mount", "--pid", "--ipc", "--uts", "--net", "--root", "--wd"]
        as_user = [] if uid == 0 else ["/usr/bin/setpriv", *_rights(uid)]
        session = ["/usr/bin/setsid", "--ctty"] if terminal else []
        return [str(NSENTER.path()), "--target", str(self._pid), *enter, "--", *session, *as_user, *command]

    async def spawn(
        self,
        command: Sequence[str],
        *,
        uid: int,
        env: Mapping[str, str] | None = None,
        streams: tuple[int, int, int] | None = None,
        terminal: bool = False,
        merged: bool = False,
    ) -> asyncio.subprocess.Process:
        """Start a program in the system, in its own session.

        Args:
            command: program and arguments.
            uid: id of the user as whom the program runs.
            env: additions to `ENVIRONMENT`.
            streams: file descriptors for standard input, output and error; None: use pipes.
            terminal: True: `streams` are a terminal, which becomes the program's controlling terminal.
            merged: True: standard error goes to the pipe of standard output.

        Raises:
            DeviceError: the system is down.
        """
        self._check_up()
        name = "root" if uid == 0 else "shell" if uid == SHELL_UID else f"u0_a{uid - 10000}"
        pipe = asyncio.subprocess.PIPE
        descriptors = streams or (pipe, pipe, asyncio.subprocess.STDOUT if merged else pipe)
        return await asyncio.create_subprocess_exec(
            *self.argv(command, uid=uid, terminal=terminal),
            stdin=descriptors[0],
            stdout=descriptors[1],
            stderr=descriptors[2],
            env={**ENVIRONMENT, "USER": name, "LOGNAME": name, "HOSTNAME": self._settings.name, **(env or {})},
            start_new_session=True,
            limit=256 * 1024,
        )

    async def run(self, command: Sequence[str], *, stdin: bytes = b"", check: bool = True) -> bytes:
        """Run a program in the system as root, and wait until it ends. Return its output.

        Raises:
            DeviceError: the system is down; or the program failed, and `check` is True.
        """
        process = await self.spawn(command, uid=0)
        out, err = await process.communicate(stdin)
        if check and process.returncode:
            raise DeviceError(
                self._settings.name,
                "a command failed",
                command=tuple(command),
                exit_code_found=process.returncode,
                stderr=err.decode(errors="replace"),
            )
        return out

    def _check_up(self) -> None:
        if not self._pid:
            raise DeviceError(self._settings.name, "the emulated device is down")

    async def _host(self, argv: Sequence[str]) -> None:
        process = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE)
        _out, err = await process.communicate()
        if process.returncode:
            raise DeviceError(self._settings.name, "a command failed", command=tuple(argv), stderr=err.decode())

    def _make_folders(self) -> None:
        own = ["local", "local/tmp", "local/traces"]
        media = [f"media/0/{name}" for name in ("Android", "Android/data", "DCIM", "Download", "Movies", "Pictures")]
        for name in ("app", "data", "misc", "system", "media", *own, "media/0", *media):
            (self.data / name).mkdir()
        for name in [*own, "media/0", *media]:
            (self.data / name).chmod(0o771 if name in own else 0o2770)
            with contextlib.suppress(OSError):  # a user namespace may have only one user
                shutil.chown(self.data / name, SHELL_UID, SHELL_UID)
        for name in ("data", "system", "misc"):
            (self.data / name).chmod(0o771)


def kill_group(process: asyncio.subprocess.Process, number: int = signal.SIGKILL) -> None:
    """Send the signal `number` to a program that `System.spawn` has started, and to its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _rights(uid: int) -> list[str]:
    user = ["--reuid", str(uid), "--regid", str(uid), "--groups", _SHELL_GROUPS] if _users() else []
    return [*user, "--inh-caps=-all", "--bounding-set=-all", "--"]


def _users() -> bool:
    """Return whether this process can run programs as other users than root: some user namespaces have only root."""
    return any(int(line.split()[2]) > SHELL_UID for line in Path("/proc/self/uid_map").read_text().splitlines())
