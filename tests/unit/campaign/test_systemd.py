"""systemd itself accepts the units, whatever characters a path has."""

import os
import shutil
import subprocess
from dataclasses import replace
from datetime import time
from pathlib import Path

import pytest

from mplab.base.errors import InputError, LabNotReadyError
from mplab.campaign.systemd import Nightly, Scope, folder_of, install, quoted, uninstall, units

ODD = "a b/100 % %h $HOME ${x} \"quoted\" 'single' back\\slash ä;#"


def nightly(folder: Path, **changes: str) -> Nightly:
    return Nightly(
        name="nightly",
        file=folder / ODD / "campaign.yaml",
        at=time(22, 5),
        runs=folder / ODD,
        campaigns=folder / "campaigns",
        environment={"PATH": "/opt/50 %/bin:/usr/bin", **changes},
    )


def unquoted(line: str) -> list[str]:
    """Return the words of a command line by systemd.service(5): unquote, then expand specifiers, then variables."""
    words, word, inside, escaped = [], "", False, False
    for character in line:
        if escaped:
            word, escaped = word + character, False
        elif character == "\\":
            escaped = True
        elif character == '"':
            inside = not inside
        elif character == " " and not inside:
            words.append(word)
            word = ""
        else:
            word += character
    assert not inside
    plain = [item.replace("%%", "\0") for item in (*words, word)]
    assert not any("%" in item for item in plain)
    first, *rest = (item.replace("\0", "%") for item in plain)
    return [first, *(item.replace("$$", "$") for item in rest)]


def lines(text: str, key: str) -> list[str]:
    return [line.removeprefix(f"{key}=") for line in text.splitlines() if line.startswith(f"{key}=")]


@pytest.mark.parametrize("scope", ["user", "system"])
def test_what_is_run(tmp_path: Path, scope: Scope) -> None:
    settings = replace(nightly(tmp_path), scope=scope, program=("/opt/$1 %/mplab",))
    service = units(settings)["mplab-nightly.service"]
    (command,) = lines(service, "ExecStart")
    places = ["--runs", str(settings.runs), "--campaigns", str(settings.campaigns)]
    assert unquoted(command) == ["/opt/$1 %/mplab", "campaign", "run", str(settings.file), *places]
    assert lines(service, "Environment") == ['"PATH=/opt/50 %%/bin:/usr/bin"']
    assert lines(service, "KillSignal") == ["SIGINT"]
    assert ("network-online.target" in service) == (scope == "system")


def test_when_it_is_run(tmp_path: Path) -> None:
    timer = units(nightly(tmp_path))["mplab-nightly.timer"]
    assert lines(timer, "OnCalendar") == ["*-*-* 22:05:00"]
    assert lines(timer, "Persistent") == ["true"]
    assert lines(timer, "RandomizedDelaySec") == ["0"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("scope", ["user", "system"])
def test_systemd_takes_them_without_a_word(tmp_path: Path, scope: Scope) -> None:
    program = tmp_path / "mp l%a$b;#"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    folder = tmp_path / "units"
    install(units(replace(nightly(tmp_path), scope=scope, program=(str(program),))), folder, scope=scope)
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    result = subprocess.run(
        ["systemd-analyze", "verify", f"--{scope}", "--man=no", *map(str, sorted(folder.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "SYSTEMD_UNIT_PATH": f"{folder}:"},
    )
    own = [line for line in result.stderr.splitlines() if "mplab-" in line]
    assert (own, result.returncode) == ([], 0), result.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_knows_the_time() -> None:
    (when,) = lines(units(nightly(Path("/lab")))["mplab-nightly.timer"], "OnCalendar")
    output = subprocess.run(["systemd-analyze", "calendar", when], capture_output=True, text=True, check=True).stdout
    assert "Normalized form: *-*-* 22:05:00" in output


def test_what_a_unit_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rename it"):
        quoted("two\nlines")
    with pytest.raises(InputError, match="absolute"):
        units(replace(nightly(tmp_path), runs=Path("runs")))
    with pytest.raises(InputError, match="starts no program with quotes"):
        units(replace(nightly(tmp_path), program=("/opt/it's/mplab",)))


def test_they_are_written_said_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "systemd" / "user"
    texts = units(nightly(tmp_path))
    for _ in range(2):  # the second time replaces the first units
        commands = install(texts, folder)
    assert commands == (
        "systemctl --user daemon-reload",
        "systemctl --user enable --now mplab-nightly.timer",
        "systemctl --user enable mplab-nightly-resume.service",
        "loginctl enable-linger",
    )
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == texts
    assert uninstall("nightly", folder)[0] == "systemctl --user disable --now mplab-nightly.timer"
    assert list(folder.iterdir()) == []
    with pytest.raises(InputError, match="no units"):
        uninstall("nightly", folder)


def test_units_of_others_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "mplab-nightly.timer"
    other.write_text("[Timer]\n", encoding="utf-8")
    with pytest.raises(InputError, match="not written by mplab"):
        install(units(nightly(tmp_path)), tmp_path)
    with pytest.raises(InputError, match="not written by mplab"):
        uninstall("nightly", tmp_path)
    assert list(tmp_path.iterdir()) == [other]


def test_units_of_the_earlier_verb_are_replaced_and_removed(tmp_path: Path) -> None:
    earlier = tmp_path / "mplab-nightly.timer"
    earlier.write_text("# Written by 'mplab nightly install'; 'mplab nightly uninstall' removes it.\n[Timer]\n")
    install(units(nightly(tmp_path)), tmp_path)
    assert "mplab nightly" not in earlier.read_text()
    uninstall("nightly", tmp_path)
    assert not earlier.exists()


def test_systemctl_is_called_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log = tmp_path / "units", tmp_path / "log"
    program = tmp_path / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@ $(ls {folder} | wc -l)" >> {log}\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert install(units(nightly(tmp_path)), folder, scope="system", enable=True) == ()
    assert uninstall("nightly", folder, scope="system", disable=True) == ()
    assert log.read_text(encoding="utf-8").splitlines() == [
        "daemon-reload 3",
        "enable --now mplab-nightly.timer 3",
        "enable mplab-nightly-resume.service 3",
        "disable --now mplab-nightly.timer 3",
        "disable mplab-nightly-resume.service 3",
        "daemon-reload 0",
    ]
    program.write_text("#!/bin/sh\necho no bus >&2; exit 1\n", encoding="utf-8")
    with pytest.raises(LabNotReadyError, match="daemon-reload: no bus"):
        install(units(nightly(tmp_path)), folder, enable=True)


def test_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert folder_of("user") == tmp_path / "systemd" / "user"
    assert folder_of("system") == Path("/etc/systemd/system")
