"""Fill volumes with configurations and content through the engine, which may be on another machine."""

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from docker import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.base import Say
from mplab.drivers.proxy.docker.layout import STORES, USER, place_of_content, volume_folders
from mplab.drivers.proxy.docker.render import Rendered

LABEL = "mplab.volume"
MARK = ".mplab"
"""File in a volume with the key (hash) of the volume's content."""
_FOLDER = "/volumes"


def fill_volumes(client: DockerClient, project: str, image: str, rendered: Rendered, say: Say) -> list[str]:
    """Copy configurations and content into the volumes of a project; skip volumes that are up to date.

    Args:
        client: client of the engine.
        project: name of the compose project.
        image: any image with ``rm`` and ``find``.
        rendered: configurations and content to copy.
        say: receives one line for each step.

    Returns:
        Names of the volumes that were filled.

    Raises:
        LabNotReadyError: a volume cannot be prepared.
    """
    wanted: dict[str, dict[str, Path]] = volume_folders(rendered.directory)
    wanted["content"] = content_places(rendered)
    filled = []
    with _helper(client, project, image, [*wanted, *STORES]) as helper:
        for name in STORES:
            _run(helper, 'chown "$2:$2" "$1" && chmod 0700 "$1"', f"{_FOLDER}/{name}", str(USER))
        for name, places in wanted.items():
            key = _key_of(name, places, rendered)
            if _read(helper, f"{_FOLDER}/{name}/{MARK}") == key:
                continue
            say(f"volume {project}_{name}: filling it")
            _empty(helper, name)
            with _archive(places, key, private=name != "content") as data:
                helper.put_archive(f"{_FOLDER}/{name}", data)
            filled.append(name)
    return filled


def content_places(rendered: Rendered) -> dict[str, Path]:
    """Return path in the content volume → file or folder of this machine that is copied there."""
    outer = [path for path in rendered.content if not any(parent in rendered.content for parent in path.parents)]
    return {place_of_content(path): path for path in outer}


def volume_names(project: str) -> list[str]:
    """Return the names of the volumes that `fill_volumes` makes."""
    return [f"{project}_{name}" for name in (*volume_folders(Path()), "content", *STORES)]


@contextmanager
def _helper(client: DockerClient, project: str, image: str, names: list[str]) -> Iterator[Container]:
    for name in names:
        client.volumes.create(f"{project}_{name}", labels={LABEL: name})
    mounts = {f"{project}_{name}": {"bind": f"{_FOLDER}/{name}", "mode": "rw"} for name in names}
    helper = client.containers.run(
        image,
        ["sleep", "3600"],
        detach=True,
        init=True,
        user="root",
        network_mode="none",
        volumes=mounts,
        labels={LABEL: "helper"},
    )
    try:
        yield helper
    finally:
        with suppress(NotFound):
            helper.remove(force=True)


def _empty(helper: Container, name: str) -> None:
    # Docker does not change the owner and mode of an existing folder when it unpacks an archive into it.
    script = 'find "$1" -mindepth 1 -delete && chown "$2:$2" "$1" && chmod "$3" "$1"'
    _run(helper, script, f"{_FOLDER}/{name}", str(USER), "0755" if name == "content" else "0700")


def _run(helper: Container, script: str, *arguments: str) -> None:
    code, output = helper.exec_run(["sh", "-c", script, "sh", *arguments])
    if code != 0:
        errors = output.decode(errors="replace") if isinstance(output, bytes) else ""
        raise LabNotReadyError(f"volume {arguments[0]} cannot be prepared: {errors.strip()}")


def _read(helper: Container, path: str) -> str:
    try:
        chunks, _ = helper.get_archive(path)
    except NotFound:
        return ""
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        file = archive.extractfile(archive.getmembers()[0])
        return file.read().decode() if file is not None else ""


def _key_of(name: str, places: Mapping[str, Path], rendered: Rendered) -> str:
    """Return a text that changes with the content of the volume `name`.

    For the volume ``content``, the text is a hash of the names, sizes and times of all files. For the other volumes,
    which hold configurations, it is `Rendered.digest`.
    """
    if name != "content":
        return rendered.digest
    digest = hashlib.sha256()
    for folder, root in sorted(places.items()):
        for path in [root, *sorted(root.rglob("*"))]:
            if path.is_file():
                status = path.stat()
                digest.update(f"{folder} {path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@contextmanager
def _archive(places: Mapping[str, Path], key: str, *, private: bool) -> Iterator[io.BufferedRandom]:
    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = USER
        member.uname = member.gname = ""
        folder, file = (0o700, 0o600) if private else (0o755, 0o644)
        member.mode = folder if member.isdir() else file
        return member

    with tempfile.TemporaryFile() as data:
        with tarfile.open(fileobj=data, mode="w", dereference=True) as archive:
            for member_name, path in places.items():
                archive.add(path, arcname=member_name, filter=owned)
            mark = tarfile.TarInfo(MARK)
            mark.size = len(key)
            # The mark is the last file: a partly filled volume has none.
            archive.addfile(owned(mark), io.BytesIO(key.encode()))
        data.seek(0)
        yield data
