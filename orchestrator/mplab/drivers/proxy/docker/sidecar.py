"""Capture packets for one cell: in a side-car, a separate container in the network namespace of another container."""

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
"""Label of side-car containers, which exist only for one cell; the value is the name of the compose project."""
FREE_MB = 500
"""Free space on the engine's disk required to start a capture, MB."""
LONGEST_S = 3600
"""Maximum duration of a capture, s. It matters only if mplab was killed and cannot stop the capture."""

_FOLDER = "/cell"
_GRACE_S = 60
_MEMORY = "256m"


class SidecarProcess:
    """`MachineProcess` for the program in a side-car container; its output is copied to a file on this machine."""

    def __init__(self, container: Container, log: Path) -> None:
        self.container = container
        self.log = log
        log.touch()
        self._follower = Thread(target=self._follow, daemon=True)
        self._follower.start()

    @property
    def pid(self) -> int:
        """Process id of the container's first process on the engine's host."""
        self.container.reload()
        return int(self.container.attrs["State"]["Pid"])

    def _follow(self) -> None:
        # When the engine fails, the thread ends; the caller that needs the exit code gets the error.
        with self.log.open("ab") as log, suppress(DockerException, RequestException):
            for chunk in self.container.logs(stream=True, follow=True):
                log.write(chunk)
                log.flush()

    def poll(self) -> int | None:
        """Return the container's exit code, or None while it runs. Raises DeviceError when the engine fails."""
        return None if self._follower.is_alive() else self._exit_code()

    def _exit_code(self) -> int:
        try:
            return int(self.container.wait(timeout=_GRACE_S)["StatusCode"])
        except (DockerException, RequestException) as error:
            raise DeviceError("capture side-car", f"the engine does not answer any more: {error}") from error

    def stop(self, timeout_s: float = 5.0) -> int:
        """Send SIGTERM to the container, wait, then send SIGKILL; return the container's exit code.

        The wait ends when the container ends, at the latest after `timeout_s` or 60 s, whichever is longer: the
        container first compresses the capture.

        Raises:
            DeviceError: the engine does not answer.
        """
        try:
            self.container.stop(timeout=max(int(timeout_s), _GRACE_S))
        except (DockerException, RequestException) as error:
            raise DeviceError("capture side-car", f"cannot be stopped: {error}") from error
        self._follower.join(_GRACE_S)
        return self._exit_code()


class Sidecar:
    """`Machine` that can only capture packets; each capture runs in its own side-car container.

    Args:
        client: client of the engine.
        image: image with the script ``capture-cell``.
        project: name of the compose project.
        beside: id of the container in whose network namespace the side-cars capture.
        free_mb: minimum free space on the engine's disk to start a capture, MB.
        tmpfs: mount options of a tmpfs for the captures; "": captures are on the engine's disk.
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
        """Return the script that runs `mptrace` and compresses its output.

        Raises:
            LabNotReadyError: `program` is not mptrace.
        """
        if program != MPTRACE:
            raise LabNotReadyError(f"{program.name} is not in the image of capture side-cars")
        return "capture-cell"

    def outbox(self, target: Path) -> str:
        """Return the path, in the side-car, of the capture file that is later copied to `target` on the host."""
        return f"{_FOLDER}/{target.name}"

    def spawn(self, argv: Sequence[str], *, log: Path) -> SidecarProcess:
        """Start a side-car container that runs `argv`, a capture command that begins with the result of `program`.

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
                # Root, because only root can have NET_RAW as its only capability.
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
        """Fetch the file of a finished capture, decompress it to `target`, verify its SHA-256, and remove the side-car.

        Raises:
            DeviceError: the file cannot be fetched, or its hash differs.
        """
        process = self._running.pop(self.outbox(target), None)
        if process is None:
            return
        packed = next((line for line in _records(process.log) if line.get("event") == "packed"), None)
        if packed is None:
            raise DeviceError(self.name, f"{target.name} was not packed by the side-car; see {process.log.name}")
        try:
            checksum = _fetch(process.container, f"{self.outbox(target)}.gz", target)
        except (DockerException, RequestException, OSError, EOFError, tarfile.TarError) as error:
            raise DeviceError(self.name, f"{target.name} cannot be fetched from the side-car: {error}") from error
        if checksum != packed["sha256"]:
            raise DeviceError(self.name, f"{target.name} was damaged on its way from the side-car: another SHA-256")
        with suppress(NotFound):
            process.container.remove(v=True, force=True)

    def clear(self) -> int:
        """Remove remaining side-cars of this or an earlier process; return their number."""
        self._running.clear()
        return remove_sidecars(self._client, self._project)


def remove_sidecars(client: DockerClient, project: str) -> int:
    """Remove all side-cars of a project, even those of other processes; return their number."""
    left = client.containers.list(all=True, filters={"label": f"{LABEL}={project}"}, ignore_removed=True)
    for container in left:
        with suppress(NotFound):
            container.remove(v=True, force=True)
    return len(left)


def _records(log: Path) -> list[Mapping[str, str]]:
    lines = log.read_text(errors="replace").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def _fetch(container: Container, packed: str, target: Path) -> str:
    """Decompress the file `packed` of a container to `target`; return the SHA-256 of `target`.

    Raises:
        tarfile.TarError: `packed` is not a regular file.
    """
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
