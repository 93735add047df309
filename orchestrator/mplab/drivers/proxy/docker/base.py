"""Provide the base image of mplab's containers: pull it from a registry, or make it from Debian packages."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from docker import DockerClient
from docker.errors import APIError, DockerException, ImageNotFound

from mplab.base.errors import LabNotReadyError
from mplab.base.places import cache_folder
from mplab.base.programs import Program

CACHE_DIR = cache_folder("docker-base")
"""Folder that caches the archive from which the base image is made."""
MMDEBSTRAP = Program("mmdebstrap", ("mmdebstrap",), ("--version",), "mmdebstrap", "makes the base image")
SUITE = "bookworm"

_BUILD_TIMEOUT_S = 900.0
_HOOK = Path("/usr/share/mmdebstrap/hooks/merged-usr")
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")

Say = Callable[[str], None]


def ensure_base(client: DockerClient, image: str, say: Say) -> str:
    """Make sure that the engine has the base image: pull or make it if necessary.

    Returns:
        Source of the image: ``engine`` (it was already there), ``registry`` or ``packages``.

    Raises:
        LabNotReadyError: no registry has the image, and it cannot be made on this machine.
    """
    try:
        client.images.get(image)
    except ImageNotFound:
        pass
    else:
        return "engine"
    say(f"{image}: asking a registry for it")
    try:
        client.images.pull(*split_name(image))
    except (APIError, DockerException) as error:
        reason = str(error).splitlines()[0][:200]
        say(f"{image}: no registry gave it; making it from Debian packages")
        make_base(client, image, because=reason)
        return "packages"
    return "registry"


def make_base(client: DockerClient, image: str, *, because: str = "") -> None:
    """Make the base image from Debian packages, and give it the name `image`.

    Args:
        client: client of the engine.
        image: name of the image.
        because: reason why no registry gave the image, for the error message.

    Raises:
        LabNotReadyError: `image` is a digest, or mmdebstrap is missing or failed.
    """
    why = f"{image} is not in the engine, no registry gave it ({because})" if because else f"{image} must be made"
    if "@" in image:
        raise LabNotReadyError(
            f"{why}, and an image with a digest cannot be made from packages. Use debian:bookworm-slim"
        )
    if MMDEBSTRAP.find() is None:
        raise LabNotReadyError(f"{why}, and mmdebstrap, which makes it from packages, is missing; {MMDEBSTRAP.remedy}")
    archive = CACHE_DIR / f"{SUITE}.tar"
    if not archive.exists():
        _make_archive(archive)
    repository, tag = split_name(image)
    with archive.open("rb") as data:
        client.api.import_image_from_data(data, repository=repository, tag=tag)


def split_name(image: str) -> tuple[str, str]:
    """Split an image name into repository and tag: ``debian:bookworm-slim`` → ("debian", "bookworm-slim").

    A name with a digest is returned whole, with the tag "".
    """
    name, colon, tag = image.rpartition(":")
    return (name, tag) if colon and "/" not in tag and "@" not in image else (image, "")


def _make_archive(archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    sources = debian_sources()
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        partial = Path(folder) / archive.name
        argv = [
            *(str(MMDEBSTRAP.path()), "--quiet", "--variant=minbase", "--include=usr-is-merged"),
            # Otherwise usrmerge is installed, and with it all of Perl.
            *([f"--hook-dir={_HOOK}"] if _HOOK.is_dir() else []),
            '--aptopt=APT::Install-Recommends "false"',
            *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            *(SUITE, str(partial), *map(str, sources)),
        ]
        try:
            result = subprocess.run(argv, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise LabNotReadyError(f"mmdebstrap is not done after {_BUILD_TIMEOUT_S:g} s") from error
        if result.returncode != 0:
            last = (result.stderr.strip().splitlines() or [f"exit code {result.returncode}"])[-1]
            raise LabNotReadyError(f"mmdebstrap cannot make the base image: {last}")
        shutil.move(partial, archive)


def debian_sources(directory: Path = Path("/etc/apt")) -> list[Path]:
    """Return the files in `directory` that define package sources of Debian 12, for mmdebstrap.

    If there are none, mmdebstrap uses its default source.
    """
    candidates = [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]
    return [
        path
        for path in candidates
        if path.suffix in {".list", ".sources"} and path.is_file() and _is_of_suite(path.read_text())
    ]


def _is_of_suite(text: str) -> bool:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    words = {word for line in lines for word in line.split()}
    return SUITE in words and "main" in words
