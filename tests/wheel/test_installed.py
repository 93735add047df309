"""The wheel in an empty virtual environment: everything that a user runs works outside of a checkout."""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mplab.base.places import ROOT
from mplab.run import plan

pytestmark = pytest.mark.timeout(1500)

MACHINES = {"x86_64": b"\x3e\x00", "aarch64": b"\xb7\x00"}
"""Processor → field ``e_machine`` of its ELF files (little-endian)."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Installed:
    """The wheel, installed: its environment, and the folder in which its commands run."""

    environment: Path
    desk: Path

    @property
    def package(self) -> Path:
        return next(self.environment.glob("lib/python*/site-packages/mplab"))

    def mplab(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run ``mplab`` with these arguments, and check its exit code."""
        own = ("PYTHONPATH", "VIRTUAL_ENV", "MPLAB_BIN", "MPLAB_RUNS")
        environment = {name: value for name, value in os.environ.items() if name not in own}
        environment |= {
            "PATH": os.pathsep.join(p for p in environment["PATH"].split(os.pathsep) if not p.startswith(str(ROOT))),
            **{f"XDG_{kind}_HOME": str(self.desk / kind.lower()) for kind in ("CACHE", "DATA", "STATE")},
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "200",
        }
        argv = [str(self.environment / "bin" / "mplab"), *arguments]
        result = subprocess.run(argv, cwd=self.desk, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == code, f"{arguments}: {result.returncode}\n{result.stdout}\n{result.stderr}"
        assert str(ROOT) not in result.stdout + result.stderr
        return result


def built(folder: Path, machine: str) -> Path:
    """Build the wheel for a processor."""
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    environment = {**os.environ, "MPLAB_WHEEL_ARCH": ARCHITECTURES[machine]}
    subprocess.run([*argv, "-w", str(folder), "."], cwd=ROOT, env=environment, check=True)
    (wheel,) = folder.glob(f"*{machine}.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"), platform.machine())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel with the locked versions; Node comes with the extra ``node``."""
    folder = tmp_path_factory.mktemp("user")
    environment, desk = folder / "environment", folder / "desk"
    desk.mkdir()
    venv.create(environment, with_pip=True)
    versions = re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / "requirements" / "lock.txt").read_text(), re.MULTILINE)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(versions))
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--constraint", str(constraints)]
    subprocess.run([*pip, f"{wheel}[node]"], cwd=folder, check=True)
    return Installed(environment, desk)


def contents(package: Path) -> Mapping[str, str]:
    """Return file → hash of its content, for each file of the installed package that pip did not compile."""
    return {
        str(path.relative_to(package)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def data_files(package: Path) -> list[str]:
    """Return the files of a package that are not Python: at least one template, style sheet and JSON file."""
    paths = [path for path in package.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}]
    assert {".j2", ".css", ".js", ".svg", ".json"} <= {path.suffix for path in paths}
    return [str(path.relative_to(package)) for path in paths]


def check_content(wheel: Path, machine: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        programs = [name for name in names if name.startswith("mplab/_data/build/bin/")]
        assert {Path(name).name for name in programs} == {"applet", "linkem", "mpflex", "mptrace", "phonelog"}
        for name in programs:
            content = archive.read(name)
            assert content[18:20] == MACHINES[machine]
            assert b"/ld-linux" not in content, f"{name} is not static"
    wrong = re.compile(r"\.go$|/tests/|/test_|testdata|node_modules|\.pyc$|\.so$")
    assert [name for name in names if wrong.search(name)] == []
    for needed in ("experiments/demo.yaml", "docs/schema/experiment.schema.json", "proxy-docker/.env"):
        assert f"mplab/_data/{needed}" in names
    assert "mplab/services/dash/service.py" in names
    for path in data_files(ROOT / "orchestrator" / "mplab" / "dashboard"):
        assert f"mplab/dashboard/{path}" in names


def test_the_wheel_has_everything_and_nothing_else(wheel: Path) -> None:
    check_content(wheel, platform.machine())


def test_the_wheel_of_another_processor_has_its_programs(tmp_path: Path) -> None:
    (other,) = set(MACHINES) - {platform.machine()}
    check_content(built(tmp_path, other), other)


def test_parts_can_be_listed_and_planned(installed: Installed) -> None:
    assert "demo" in installed.mplab("--help").stdout
    assert "web" in installed.mplab("scenarios").stdout
    assert "baseline" in installed.mplab("links").stdout
    assert "mptcp" in installed.mplab("transports").stdout
    planned = json.loads(installed.mplab("plan", "demo", "--json").stdout)["plan"]["cells"]
    assert len(planned) == len(plan(ROOT / "experiments" / "demo.yaml").plan.cells)
    assert "unknown experiment 'dem'" in installed.mplab("plan", "dem", code=2).stderr
    installed.mplab("init", "--kind", "lab", "lab.yaml")
    first = (installed.desk / "lab.yaml").read_text().splitlines()[0]
    assert (installed.desk / first.removeprefix("# yaml-language-server: $schema=")).resolve().is_file()


def test_what_is_missing_is_named_with_its_command(installed: Installed) -> None:
    message = r"is not installed. Run: pip install 'mplab\[{}\]'"
    for extra, *arguments in (
        ("phones", "run", "smoke", "--lab", "emulated-phone"),
        ("report", "results"),
        ("docker", "proxy", "status"),
        ("serve", "serve"),
        ("cluster", "analyze", "--cluster", "local"),
    ):
        result = installed.mplab(*arguments, code=3)
        assert re.search(message.format(extra), result.stderr), (extra, result.stderr)
    assert "mplab setup" in installed.mplab("run", "smoke", code=3).stderr
    checks = {
        check["name"]: check for check in json.loads(installed.mplab("doctor", "--json", code=3).stdout)["checks"]
    }
    assert (checks["appium"]["level"], checks["appium"]["remedy"]) == ("missing", "mplab setup")
    assert checks["mptrace"]["level"] == checks["node"]["level"] == "ok"
    missing = [check["name"] for check in checks.values() if check["level"] == "missing"]
    assert missing == ["appium"]


def test_a_run_ends_in_a_report_and_writes_nothing_into_the_package(installed: Installed) -> None:
    before = contents(installed.package)
    assert "117 MB to download" in installed.mplab("setup", "--dry-run").stderr
    installed.mplab("setup")
    installed.mplab("doctor")
    result = json.loads(installed.mplab("run", "smoke", "--json").stdout)
    assert result["outcomes"]["ok"] == 6
    assert "WiFi" in Path(installed.desk, result["report"]).read_text()
    assert contents(installed.package) == before
    assert {path.name for path in installed.desk.iterdir() if path.is_dir()} <= {"cache", "data", "runs", "state"}
    installed.mplab("setup", "--remove")
    assert not (installed.desk / "data" / "mplab" / "appium").exists()
