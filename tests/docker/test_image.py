"""The image of mplab: a run in a container without privileges leaves its report in the mounted folder."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from docker import DockerClient

from mplab.base.places import ROOT
from tests.docker.conftest import congestion_control
from tests.docker.engine import Engine

pytestmark = pytest.mark.timeout(1800)

TAG = "mplab:test"
USER = 12345
GUIDE = ROOT / "docs" / "install.md"
EXPERIMENT = f"""\
mplab: 1
name: one
seed: 1
congestion_control: {congestion_control()}
transports: [sptcp-wifi]
links: [baseline]
scenarios:
  - download: {{sizes: [10 kB]}}
tolerance: {{rtt: 40 %, rate: 40 %}}
retries: 2
"""
DockerRun = Callable[..., subprocess.CompletedProcess[str]]


def documented(start: str) -> list[str]:
    """Return the options of the guide's command that begins with `start`, up to the mounted folder."""
    text = GUIDE.read_text().replace("\\\n", " ")
    (command,) = re.findall(rf"^ *({re.escape(start)}.*) -v ", text, re.MULTILINE)
    return shlex.split(command.replace("$(id -u):$(id -g)", f"{USER}:{USER}"))[1:]


def without(options: Sequence[str], left_out: str) -> list[str]:
    """Return the options without the value `left_out` and the option before it."""
    at = options.index(left_out)
    return [*options[: at - 1], *options[at + 1 :]]


USER_OPTIONS = documented("docker run --rm --user")
ROOT_OPTIONS = documented("docker run --rm --cap-drop ALL --cap-add")


@pytest.fixture(scope="module")
def image(engine: Engine) -> str:
    if shutil.which("docker") is None:
        pytest.skip("not installed: docker, the client of the engine")
    argv = [sys.executable, str(ROOT / "tools" / "make-image"), TAG]
    subprocess.run(argv, check=True, env={**os.environ, "DOCKER_HOST": engine.url})
    return TAG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that containers mount."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def docker_run(engine: Engine, image: str, folder: Path, client: DockerClient) -> Iterator[DockerRun]:
    """Run mplab in a container until it exits; at the end, check that no container has left anything in the engine."""

    def state() -> tuple[object, ...]:
        containers = [container.id for container in client.containers.list(all=True)]
        links = engine.node.run(["ip", "-brief", "link"]).stdout
        return containers, sorted(str(volume.id) for volume in client.volumes.list()), links

    def run(options: Sequence[str], *command: str) -> subprocess.CompletedProcess[str]:
        owner = USER if "--user" in options else 0
        os.chown(folder, owner, owner)
        argv = ["docker", *options, "-v", f"{folder}:/work", image, *command]
        environment = {**os.environ, "DOCKER_HOST": engine.url}
        return subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False, env=environment)

    before = state()
    yield run
    assert state() == before


def reports(folder: Path) -> list[Path]:
    return list(folder.glob("runs/*/report/index.html"))


def test_a_run_leaves_its_report_in_the_folder_of_the_user(docker_run: DockerRun, folder: Path) -> None:
    result = docker_run(USER_OPTIONS, "run", "smoke")
    assert result.returncode == 0, result.stdout + result.stderr
    (report,) = reports(folder)
    assert "sptcp-wifi" in report.read_text()
    assert [path.name for path in folder.iterdir()] == ["runs"]
    assert {path.stat().st_uid for path in folder.rglob("*")} == {USER}


def test_root_runs_an_experiment_of_the_folder(docker_run: DockerRun, folder: Path) -> None:
    (folder / "one.yaml").write_text(EXPERIMENT)
    result = docker_run(ROOT_OPTIONS, "run", "one")
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(reports(folder)) == 1


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        (USER_OPTIONS, "seccomp=unconfined"),
        (USER_OPTIONS, "systempaths=unconfined"),
        *((ROOT_OPTIONS, name) for name in ("SYS_ADMIN", "SYS_CHROOT", "NET_ADMIN", "NET_RAW", "NET_BIND_SERVICE")),
    ],
)
def test_the_error_for_a_missing_option_names_it(
    docker_run: DockerRun, folder: Path, options: Sequence[str], left_out: str
) -> None:
    result = docker_run(without(options, left_out), "run", "smoke")
    assert result.returncode == 3, result.stdout + result.stderr
    message = " ".join(result.stderr.split())
    assert "'docker run' needs" in message
    assert left_out in message
    assert not list(folder.iterdir())
