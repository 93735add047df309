"""Files that come with mplab, found by their names; the same folders in a checkout and in a wheel."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.base.places import EXPERIMENTS, LABS, ROOT, by_name, cache_folder, fetched_folder
from mplab.run.planning import find_experiment
from mplab.userfiles.labs.labuse import NoSuchLabError, find_lab


def test_a_name_means_the_file_that_comes_with_mplab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_experiment(Path("demo")) == EXPERIMENTS / "demo.yaml"
    assert find_lab("virtual-router", tmp_path).file is not None
    assert by_name(Path("virtual-router"), LABS) == LABS / "virtual-router.yaml"


@pytest.mark.parametrize("own", ["demo", "demo.yaml"])
def test_a_file_of_the_working_directory_is_preferred(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(own).touch()
    assert find_experiment(Path("demo")) == Path(own)


def test_a_lab_is_a_file_next_to_the_experiment_not_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("mine.yaml").write_text((LABS / "virtual-router.yaml").read_text())
    with pytest.raises(NoSuchLabError):
        find_lab("mine", tmp_path / "there")
    assert find_lab("mine", tmp_path / "here").file is not None


@pytest.mark.parametrize("given", ["/", ".", ".."])
def test_a_folder_is_no_name(given: str) -> None:
    assert by_name(Path(given), EXPERIMENTS) == Path(given)


@pytest.mark.parametrize("given", ["demo.yaml", "./here/demo", "/demo", "nowhere/smoke"])
def test_a_path_is_no_name(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_experiment(Path(given)) == Path(given)


def test_an_unknown_name_is_refused_with_those_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"unknown experiment 'dem'\. Did you mean 'demo'\? Allowed: .*, smoke"):
        find_experiment(Path("dem"))


def test_a_checkout_keeps_its_files_in_itself() -> None:
    assert cache_folder("origin") == ROOT / "build" / "origin"
    assert fetched_folder("appium", "tools/appium") == ROOT / "tools" / "appium"


def test_an_installed_package_writes_into_the_folders_of_the_user(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "mplab"
    (package / "_data").mkdir(parents=True)
    (package / "base").mkdir()
    shutil.copy(ROOT / "orchestrator" / "mplab" / "base" / "places.py", package / "base")
    code = (
        "from mplab.base.places import *; print(INSTALLED, ROOT, PACKAGES[0], part('proxy-docker', 'services'), "
        "cache_folder('origin'), fetched_folder('appium', 'tools/appium'), sep='\\n')"
    )
    environment = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": "/c", "HOME": "/h"}
    argv = [sys.executable, "-S", "-c", code]
    result = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [
        "True",
        str(package / "_data"),
        str(package.parent),
        str(package / "services"),
        "/c/mplab/origin",
        "/h/.local/share/mplab/appium",
    ]
