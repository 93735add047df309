"""Run Docker Compose: v2 (``docker compose``) or Debian's 1.29 (``docker-compose``), whichever is installed."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypedDict

from ruamel.yaml import YAML

from mplab.base.errors import LabNotReadyError
from mplab.base.packages import install
from mplab.base.programs import PROXY_DIR
from mplab.drivers.proxy.docker.tunnel import near

FILE = PROXY_DIR / "compose.yaml"
ENV_FILE = PROXY_DIR / ".env"
_TIMEOUT_S = 1800.0

_TAKEN = re.compile(
    r"Bind for (?P<bind>\S+) failed: port is already allocated|(?P<listen>\d[\d.]+:\d+)[^\n]*address already in use"
)
_NO_ADDRESS = re.compile(r"(?P<address>\d[\d.]+):\d+[^\n]*cannot assign requested address")
_NO_REGISTRY = re.compile(
    r"pull access denied|manifest unknown|no such host|dial tcp|TLS handshake|No such image|needs to be built", re.I
)
_TRIES = 5
_CONNECTION_LOST = re.compile(r"Pool is closed|Connection aborted")
"""Error of Compose 1.29, after which the call is repeated; a repeated call skips the steps that were already done.

Compose keeps a pool of 25 connections per URL. It sometimes closes one in use, or uses one that the engine has
closed."""
_OVERLAP = re.compile(r"Pool overlaps with other one", re.I)
_NO_VOLUME = re.compile(r'[Vv]olume "?(?P<volume>[\w-]+)"? [^\n]*not (?:be )?found')


class _Service(TypedDict):
    """Keys of a service in the compose file that this module reads."""

    profiles: list[str]
    image: str


def profiles() -> list[str]:
    """Return all profiles of the compose file, in its order."""
    services: Mapping[str, _Service] = YAML(typ="safe").load(FILE)["services"]
    return list(dict.fromkeys(name for service in services.values() for name in service["profiles"]))


def one_for_each_image(chosen: Sequence[str]) -> list[str]:
    """Return the names of services in the profiles `chosen`: for each image that they use, one service.

    Several services use the same image. Compose builds an image once if only these services are built.
    """
    services: Mapping[str, _Service] = YAML(typ="safe").load(FILE)["services"]
    service_of: dict[str, str] = {}
    for name, service in services.items():
        if not set(chosen).isdisjoint(service["profiles"]):
            service_of.setdefault(service["image"], name)
    return list(service_of.values())


def default_settings() -> dict[str, str]:
    """Return the variables of the compose file that ``.env`` sets: name → value."""
    lines = [line.strip() for line in ENV_FILE.read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@cache
def compose_command() -> tuple[str, ...]:
    """Return the command that starts Compose.

    Raises:
        LabNotReadyError: Compose is not installed.
    """
    for command in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(command[0]) is None:
            continue
        result = subprocess.run([*command, "version"], capture_output=True, text=True, timeout=30, check=False)
        if result.returncode == 0:
            return command
    raise LabNotReadyError(
        f"neither 'docker compose' nor 'docker-compose' was found; install it: {install('docker-compose')}"
    )


def run_compose(
    arguments: Sequence[str],
    *,
    url: str,
    settings: Mapping[str, str],
    chosen: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Run Compose on mplab's compose file.

    Args:
        arguments: arguments of Compose.
        url: URL of the engine.
        settings: variables of the compose file; they take precedence over ``.env``.
        chosen: profiles to use.
        say: receives each line that Compose prints.

    Raises:
        LabNotReadyError: Compose failed; the message gives the reason in one sentence.
    """
    argv = [*compose_command(), "--file", str(FILE), "--project-directory", str(FILE.parent)]
    argv += [*(f"--profile={name}" for name in chosen), *arguments]
    environment = {**os.environ, "COMPOSE_ANSI": "never", "BUILDKIT_PROGRESS": "plain", **settings}
    environment |= {"DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0"} if _no_buildx() else {}
    with near(url) as socket_url:
        for _ in range(_TRIES):
            code, output = _run(argv, environment | {"DOCKER_HOST": socket_url}, say)
            if code == 0:
                return
            if not _CONNECTION_LOST.search(output):
                break
    raise LabNotReadyError(why_failed(output) or f"compose {arguments[0]} failed ({code})")


def _run(argv: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> tuple[int, str]:
    lines: list[str] = []
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as process:
        assert process.stdout is not None  # noqa: S101 - PIPE was asked for
        for line in process.stdout:
            lines.append(line.rstrip())
            say(line.rstrip())
        return process.wait(_TIMEOUT_S), "\n".join(lines)


@cache
def _no_buildx() -> bool:
    if shutil.which("docker") is None:
        return True
    result = subprocess.run(["docker", "buildx", "version"], capture_output=True, timeout=30, check=False)
    return result.returncode != 0


def why_failed(output: str) -> str:
    """Explain the output of a failed Compose call in one sentence."""
    if match := _TAKEN.search(output):
        bind = match["bind"] or match["listen"]
        return f"port {bind} is taken by another program; end it, or choose other addresses (listen, .env)"
    if match := _NO_ADDRESS.search(output):
        return f"{match['address']} is no address of the engine's host; 'listen' names the addresses of that server"
    if _OVERLAP.search(output):
        return "a network of the lab is taken on the engine's host; choose MPLAB_FRONT_1 and MPLAB_FRONT_2 (.env)"
    if match := _NO_VOLUME.search(output):
        return f"the volume {match['volume']} is not there; 'mplab proxy prepare' makes it"
    if _NO_REGISTRY.search(output):
        return f"an image is missing and no registry gave it: {_last(output)}; 'mplab proxy prepare' builds all images"
    return f"compose: {_last(output)}"


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error|failed|cannot|denied", line, re.I)]
    return (errors or lines or ["no reason given"])[-1][:300]
