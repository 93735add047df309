"""Captures of one cell by a container of their own, in the network namespace of what they watch."""

import gzip
import hashlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from docker import DockerClient
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.programs import MPTRACE, Program

LABEL = "mplab.cell"
"""Of containers that live as long as a cell; the name of their project."""
FREE_MB = 500
"""What must be free on the engine's disk before a capture begins."""
LONGEST_S = 3600
"""A capture that nobody ends, because the orchestrator was killed, ends by itself."""

_FOLDER = "/cell"
_GRACE_S = 60
_MEMORY = "256m"


class SidecarProcess:
    """`MachineProcess`: a container; its output goes to a file of this machine."""

    def __init__(self, container: Container, log: Path) -> None:
        self.container = container
        self.log = log
        log.touch()
        self._follower = Thread(target=self._follow, daemon=True)
        self._follower.start()

    @property
    def pid(self) -> int:
        """Of the container's first process, as the engine sees it."""
        self.container.reload()
        return int(self.container.attrs["State"]["Pid"])

    def _follow(self) -> None:
        # The engine may go: whoever asks for the exit code hears of it.
        with self.log.open("ab") as log, suppress(DockerException, RequestException):
            for chunk in self.container.logs(stream=True, follow=True):
                log.write(chunk)
                log.flush()

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        return None if self._follower.is_alive() else self._exit_code()

    def _exit_code(self) -> int:
        try:
            return int(self.container.wait(timeout=_GRACE_S)["StatusCode"])
        except (DockerException, RequestException) as error:
            raise DeviceError("capture side-car", f"the engine does not answer any more: {error}") from error

    def stop(self, timeout_s: float = 5.0) -> int:
        """SIGTERM, then SIGKILL; packing what was captured takes its time."""
        try:
            self.container.stop(timeout=max(int(timeout_s), _GRACE_S))
        except (DockerException, RequestException) as error:
            raise DeviceError("capture side-car", f"cannot be stopped: {error}") from error
        self._follower.join(_GRACE_S)
        return self._exit_code()


class Sidecar:
    """`Machine` that can capture, and nothing else: each capture is a container.

    Args:
        client: of the engine.
        image: that has ``capture-cell``.
        project: name of the compose project.
        beside: gives the container whose network is captured.
        free_mb: refuse to capture when less is free on the engine's disk.
        tmpfs: options of a file system in memory for captures; "": they are on the engine's disk.
    """

    name = "proxy"

    def __init__(
        self,
        client: DockerClient,
        *,
        image: str,
        project: str,
        beside: str,
        free_mb: int = FREE_MB,
        tmpfs: str = "",
    ) -> None:
        self._client = client
        self._image = image
        self._project = project
        self._beside = beside
        self._free_mb = free_mb
        self._tmpfs = tmpfs
        self._running: dict[str, SidecarProcess] = {}

    def program(self, program: Program) -> str:
        """`mptrace` alone, by the script that packs what it has written."""
        if program != MPTRACE:
            raise LabNotReadyError(f"{program.name} is not in the image of capture side-cars")
        return "capture-cell"

    def outbox(self, target: Path) -> str:
        """In the container."""
        return f"{_FOLDER}/{target.name}"

    def spawn(self, argv: Sequence[str], *, log: Path) -> SidecarProcess:
        """Start a container; `argv` begins with what `program` gave.

        Raises:
            DeviceError: the engine refused.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        target = argv[argv.index("--write") + 1]
        try:
            container = self._client.containers.create(
                self._image,
                list(argv),
                environment=self._environment(target),
                network_mode=f"container:{self._beside}",
                volumes=[] if self._tmpfs else [_FOLDER],
                tmpfs={_FOLDER: self._tmpfs} if self._tmpfs else {},
                # Root, because only root can be given NET_RAW alone; and nothing else.
                cap_drop=["ALL"],
                cap_add=["NET_RAW"],
                security_opt=["no-new-privileges:true"],
                read_only=True,
                init=True,
                mem_limit=_MEMORY,
                pids_limit=64,
                labels={LABEL: self._project},
            )
            container.start()
        except ImageNotFound as error:
            raise DeviceError(
                self.name, f"{self._image} is not in the engine; 'mplab proxy prepare' builds it"
            ) from error
        except (APIError, RequestException) as error:
            raise DeviceError(self.name, f"the capture side-car cannot be started: {error}") from error
        process = SidecarProcess(container, log)
        self._running[target] = process
        return process

    def _environment(self, target: str) -> dict[str, str]:
        return {"MPLAB_FILE": target, "MPLAB_FREE_MB": str(self._free_mb), "MPLAB_SECONDS": str(LONGEST_S)}

    def bring(self, target: Path) -> None:
        """Fetch what a capture that has ended has written, unpack it, and compare it with what was packed.

        Raises:
            DeviceError: it cannot be fetched, or is not what was written there.
        """
        process = self._running.pop(self.outbox(target), None)
        if process is None:
            return
        packed = next((line for line in _records(process.log) if line.get("event") == "packed"), None)
        if packed is None:
            raise DeviceError(self.name, f"{target.name} was not packed by the side-car; see {process.log.name}")
        try:
            found = _fetch(process.container, f"{self.outbox(target)}.gz", target)
        except (DockerException, RequestException, OSError, EOFError, tarfile.TarError) as error:
            raise DeviceError(self.name, f"{target.name} cannot be fetched from the side-car: {error}") from error
        if found != packed["sha256"]:
            raise DeviceError(self.name, f"{target.name} was damaged on its way from the side-car: another SHA-256")
        with suppress(NotFound):
            process.container.remove(v=True, force=True)

    def clear(self) -> int:
        """Remove side-cars that are left, of this process or of one that was killed; how many there were."""
        self._running.clear()
        return remove_sidecars(self._client, self._project)


def remove_sidecars(client: DockerClient, project: str) -> int:
    """Remove every side-car of a project, whoever has started it; how many there were."""
    left = client.containers.list(all=True, filters={"label": f"{LABEL}={project}"}, ignore_removed=True)
    for container in left:
        with suppress(NotFound):
            container.remove(v=True, force=True)
    return len(left)


def _records(log: Path) -> list[Mapping[str, str]]:
    lines = log.read_text(errors="replace").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def _fetch(container: Container, packed: str, target: Path) -> str:
    """Put a packed file of a container into `target`; the SHA-256 of what is in it."""
    chunks, _ = container.get_archive(packed)
    with tempfile.TemporaryFile() as data:
        for chunk in chunks:
            data.write(chunk)
        data.seek(0)
        with tarfile.open(fileobj=data) as archive:
            member = archive.extractfile(archive.getmembers()[0])
            if member is None:
                raise tarfile.TarError(f"{packed} is no file")
            with gzip.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
