"""``mplab lab device`` on the command line."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from mplab.base.errors import InputError
from mplab.cli.main import app
from tests.device.conftest import Adb, wait_until

MPLAB = [sys.executable, "-m", "mplab", "lab", "device"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MPLAB, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_a_device_by_hand(adb: Adb) -> None:
    process = subprocess.Popen(
        [*MPLAB, "--model", "android-10", "--serial", "BYHAND", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    text = ""
    while not text.rstrip().endswith("}"):
        text += process.stdout.readline()
    facts = json.loads(text)
    adb("connect", facts["address"])
    wait_until(lambda: adb.state(facts["address"]) == "device", "adb is connected")
    assert run("fault", "battery-low", "level=7", "--serial", "BYHAND").returncode == 0
    assert "  level: 7\n" in adb.text("shell", "dumpsys battery", serial=facts["address"])
    bad = run("fault", "slow", "second=1", "--serial", "BYHAND")
    assert (bad.returncode, "seconds" in bad.stderr) == (1, True)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0
    gone = run("fault", "clear", "--serial", "BYHAND")
    assert gone.returncode == 3
    assert "no emulated device 'BYHAND'" in gone.stderr


def refused(*arguments: str) -> str:
    """Return the error message for a command line."""
    result = CliRunner().invoke(app, ["lab", "device", *arguments])
    assert isinstance(result.exception, InputError)
    return str(result.exception)


def test_what_is_wrong_is_told_before_anything_is_started(tmp_path: Path) -> None:
    assert "Did you mean 'android-16'? Allowed: android-10," in refused("--model", "android-31")
    file = tmp_path / "phone.yaml"
    file.write_text("mplab: 1\nmodel: X\nproduct: x\nandroid: 9\nserial: A B\nmptcp: maybe\nbattry: {}\n")
    lines = refused("--model", str(file)).splitlines()
    assert [line.split(".yaml:")[1].split(":")[0] for line in lines] == ["4", "5", "6", "7"]
    assert "Did you mean 'disk-full'?" in refused("fault", "disk-fool")
    assert "Allowed: any, listed, nobody" in refused("--trust", "all")


def test_lists() -> None:
    phones = CliRunner().invoke(app, ["lab", "device", "list", "--json"]).stdout
    assert {"android-10", "android-13", "android-16", "mptcp-095"} <= set(json.loads(phones))
    assert "disk-full" in CliRunner().invoke(app, ["lab", "device", "fault"]).stdout
