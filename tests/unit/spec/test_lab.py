"""Lab files: the output of `mplab init --kind lab` is valid and matches its comments."""

from pathlib import Path

from typer.testing import CliRunner

from mplab.cli.main import app
from mplab.drivers.shaper.openwrt.driver import RouterFile
from mplab.userfiles.labs.lab import LabFile, load_lab


def written(tmp_path: Path) -> tuple[Path, LabFile]:
    file = tmp_path / "Bench 1.yaml"
    result = CliRunner().invoke(app, ["init", "--kind", "lab", str(file)])
    assert result.exit_code == 0
    assert "mplab doctor --lab" in result.stdout.replace("\n", " ")
    return file, load_lab(file)


def test_what_init_writes_is_a_lab(tmp_path: Path) -> None:
    _, lab = written(tmp_path)
    assert lab.name == "bench-1"
    router = lab.routers["wifi"]
    assert isinstance(router, RouterFile)
    assert router.dead_man == 15
    assert lab.phones["phone-1"].attachments()["wlan0"].whose == "02:00:00:00:00:01"
    assert lab.machines()["wifi"].interfaces == ("phy0-ap0",)


def test_what_it_has_as_comments_is_allowed_too(tmp_path: Path) -> None:
    file, _ = written(tmp_path)
    lines = []
    for line in file.read_text().splitlines():
        begin, _, comment = line.partition("# ")
        option = not begin.strip() and comment.split(":")[0].strip().isidentifier() and begin
        lines.append(begin + comment if option and "known_hosts" not in comment and "lte" not in comment else line)
    file.write_text("\n".join(lines).replace("SHA256:…", "SHA256:" + "A" * 43))
    router = load_lab(file).routers["wifi"]
    assert isinstance(router, RouterFile)
    assert router.radio is not None
    assert (router.radio.channel, router.radio.tx_power_dbm, router.radio.ssid) == (36, 10, "mplab")
    assert router.host_key is not None
    assert router.key == "~/.ssh/id_ed25519"


def test_doctor_reads_strictly(tmp_path: Path) -> None:
    file, _ = written(tmp_path)
    file.write_text(file.read_text().replace("flow_offload", "flow_ofload"))
    result = CliRunner().invoke(app, ["doctor", "--lab", str(file)])
    assert type(result.exception).__name__ == "InputError"
    assert "flow_ofload" in str(result.exception)
    assert "Did you mean 'flow_offload'?" in str(result.exception)
