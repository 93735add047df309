"""Installing and removing the dead-man's switch, and the output of `mplab` for a lab file."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from mplab.cli.main import app
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.tc.ssh import SshConnection
from tests.router.conftest import lab_text, settings_of
from tests.router.stand_in import StandInRouter


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_installed_used_and_removed(bare_router: StandInRouter, tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(lab_text(bare_router))
    lab = str(file)
    root = bare_router.root
    mplab("router", "remove", lab)
    assert "nothing of mplab is installed" in mplab("router", "show", lab).stdout
    refused = mplab("router", "shape", lab, "one", "--seconds", "1")
    assert "no dead-man's switch is installed: run 'mplab router install" in str(refused.exception)
    before = {*root.glob("etc/**/*"), *root.glob("usr/sbin/*")}

    assert "is installed and runs" in mplab("router", "install", lab).stdout
    assert "already" in mplab("router", "install", lab).stdout
    keep_list = (root / "lib/upgrade/keep.d/mplab-guard").read_text().split()
    assert [path for path in keep_list if not (root / path.lstrip("/")).is_symlink()] == [*guard.INSTALLED], (
        "a sysupgrade keeps all of it"
    )
    assert len(keep_list) == len(guard.INSTALLED) + 1, "and the link that starts it at boot"
    shown = json.loads(mplab("router", "show", lab, "--json").stdout)["wifi"]
    assert shown | {"installed": True, "running": True, "enabled": True, "owner": ""} == shown

    shaped = mplab("router", "shape", lab, "one", "--seconds", "0.2", "--json")
    assert json.loads(shaped.stdout)["wlan0"]["down"]["rate_bps"] == 7_040_000

    doctor = json.loads(mplab("doctor", "--lab", lab, "--json").stdout)
    assert doctor["ready"], doctor
    assert {"router wifi", "router wifi: shaping", "phone one: wlan0"} <= {item["name"] for item in doctor["checks"]}

    ethtool = root / "usr/sbin/ethtool"
    ethtool.rename(root / "usr/sbin/ethtool.off")
    checks = json.loads(mplab("doctor", "--lab", lab, "--json").stdout)["checks"]
    (root / "usr/sbin/ethtool.off").rename(ethtool)
    (found_gro,) = (item for item in checks if item["name"] == "router wifi: GRO")
    assert found_gro["level"] == "warning"
    assert "opkg install ethtool" in found_gro["found"]

    connection = SshConnection("router", settings_of(bare_router))
    connection.connect()
    connection.run("echo '# changed' >>/usr/sbin/mplab-guard")
    connection.close()
    result = mplab("doctor", "--lab", lab, "--json")
    assert result.exit_code == 3
    assert [item["found"] for item in json.loads(result.stdout)["checks"] if item["level"] == "missing"] == [
        "another version is installed"
    ]
    assert "is installed and runs" in mplab("router", "install", lab).stdout

    assert "is removed" in mplab("router", "remove", lab).stdout
    assert {*root.glob("etc/**/*"), *root.glob("usr/sbin/*")} == before
    assert not (root / "lib/upgrade/keep.d/mplab-guard").exists()
    mplab("router", "install", lab)
