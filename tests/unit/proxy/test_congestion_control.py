"""A congestion control that the engine's host does not allow is refused before anything is built."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from docker.errors import ImageNotFound

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker import byhand, stack
from mplab.drivers.proxy.docker.byhand import examine
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings


@pytest.fixture(autouse=True)
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "allowed"
    file.write_text("reno bbr\n")
    monkeypatch.setattr(stack, "ALLOWED", file)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return file


class BuildingError(Exception):
    """Raised when the images would be built."""


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine of this machine, where building the images raises `BuildingError`."""

    def build(*_arguments: object) -> None:
        raise BuildingError

    monkeypatch.setattr(stack, "connected", lambda _url: nullcontext(None))
    monkeypatch.setattr(stack, "ensure_base", build)


def up(wanted: str) -> None:
    DockerStack(StackSettings("unix:///none.sock", congestion_control=wanted)).up()


@pytest.mark.usefixtures("near")
def test_one_that_is_not_allowed() -> None:
    with pytest.raises(LabNotReadyError) as refused:
        up("cubic")
    assert str(refused.value) == (
        "congestion control cubic: the kernel of the engine's host allows only reno, bbr. Allow it there: sysctl -w "
        "net.ipv4.tcp_allowed_congestion_control='reno bbr cubic'; or name another one by 'congestion_control'"
    )


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("wanted", ["bbr", ""])
def test_one_that_is_allowed_and_the_systems_own(wanted: str) -> None:
    with pytest.raises(BuildingError):
        up(wanted)


@pytest.mark.usefixtures("near")
def test_a_kernel_that_does_not_say(allowed: Path) -> None:
    allowed.unlink()
    with pytest.raises(BuildingError):
        up("cubic")


class FarEngine:
    """The client of an engine on another host, which answers as a container would."""

    def __init__(self) -> None:
        self.containers = self.images = self
        self.asked: list[str] = []

    def run(self, image: str, command: list[str], **_options: object) -> bytes:
        self.asked = [image, *command]
        return b"reno bbr\n"

    def get(self, _image: str) -> None:
        raise ImageNotFound("no such image")

    def info(self) -> dict[str, object]:
        return {"ServerVersion": "20.10", "OperatingSystem": "Debian", "Name": "far", "MemoryLimit": True}


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> FarEngine:
    engine = FarEngine()
    for module in (stack, byhand):
        monkeypatch.setattr(module, "connected", lambda _url: nullcontext(engine))
    monkeypatch.setattr(DockerStack, "prepare", lambda *_arguments, **_options: None)
    monkeypatch.setattr(DockerStack, "status", lambda _stack: [])
    return engine


def test_another_host_is_asked_by_a_container_before_anything_is_started(far: FarEngine, allowed: Path) -> None:
    with pytest.raises(LabNotReadyError, match="congestion control cubic: the kernel of the engine's host allows only"):
        DockerStack(StackSettings("ssh://lab@far", congestion_control="cubic")).up()
    assert far.asked == ["mplab/net:latest", "cat", str(allowed)]


@pytest.mark.usefixtures("far")
def test_the_doctor_sees_it_before_there_are_images(tmp_path: Path) -> None:
    findings = examine(DockerStack(StackSettings(f"unix://{tmp_path}/none.sock", congestion_control="cubic")))
    (finding,) = (finding for finding in findings if finding.what == "congestion control")
    assert not finding.ok
    assert "allows only reno, bbr" in finding.found
