"""A congestion control that the engine's host does not allow is refused before anything is built."""

from pathlib import Path

import pytest

from orchestrator.errors import LabNotReadyError
from orchestrator.proxy.docker import DockerStack, StackSettings, stack


@pytest.fixture(autouse=True)
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "allowed"
    file.write_text("reno bbr\n")
    monkeypatch.setattr(stack, "ALLOWED", file)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return file


def refusal(tmp_path: Path, wanted: str) -> str:
    """Of an engine of this machine, which does not run: that is found out next."""
    settings = StackSettings(f"unix://{tmp_path}/none.sock", congestion_control=wanted)
    with pytest.raises(LabNotReadyError) as refused:
        DockerStack(settings).up()
    return str(refused.value)


def test_one_that_is_not_allowed(tmp_path: Path) -> None:
    assert refusal(tmp_path, "cubic") == (
        "congestion control cubic: the kernel of the engine's host allows only reno, bbr. Allow it there: sysctl -w "
        "net.ipv4.tcp_allowed_congestion_control='reno bbr cubic'; or name another one by "
        "'congestion_control'"
    )


@pytest.mark.parametrize("wanted", ["bbr", ""])
def test_one_that_is_allowed_and_the_systems_own(tmp_path: Path, wanted: str) -> None:
    assert "does not run; start it" in refusal(tmp_path, wanted)


def test_a_kernel_that_does_not_say(tmp_path: Path, allowed: Path) -> None:
    allowed.unlink()
    assert "does not run; start it" in refusal(tmp_path, "cubic")
