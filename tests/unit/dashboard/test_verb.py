"""``mplab serve`` and ``mplab campaign serve`` print the URL, and explain what is missing."""

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mplab.base import extras
from mplab.cli.main import main
from tests.unit.dashboard.lab import CAMPAIGN, Folders


@contextmanager
def served(*arguments: str, cwd: Path) -> Iterator[str]:
    """Run a verb that serves; yield the URL that it prints. Check that it ends without an error."""
    argv = [sys.executable, "-m", "mplab", *arguments, "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MPLAB_")}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = process.stdout.readline().strip()
            assert url, process.stderr.read()
            yield url
        finally:
            process.terminate()  # as Ctrl-C, which a shell's background job ignores
            try:
                code = process.wait(timeout=60)
            finally:
                process.kill()
            assert (code, "Traceback" in process.stderr.read()) == (0, False)


def status_of(url: str) -> tuple[int, str]:
    """Return status and text of a page."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
    with closing(connection):
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.long
def test_the_folders_of_this_place_are_served(folders: Folders) -> None:
    run = folders.ended()
    with served("serve", cwd=folders.path) as url:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        status, page = status_of(url)
        assert status == 200
        assert run in page


@pytest.mark.long
def test_a_token_is_printed_for_other_machines(folders: Folders) -> None:
    with served("serve", "--host", "0.0.0.0", cwd=folders.path) as url:  # noqa: S104 - the case
        assert re.fullmatch(r"http://0\.0\.0\.0:\d+/\?token=[\w-]{43}", url)
        assert status_of(url)[0] == 303
        assert status_of(url.partition("?")[0])[0] == 401


@pytest.mark.long
def test_a_campaign_is_served_with_its_page(folders: Folders) -> None:
    folders.night()
    for arguments, cwd in ([], folders.path), (["."], folders.campaigns / CAMPAIGN):
        with served("campaign", "serve", *arguments, cwd=cwd) as url:
            assert urlsplit(url).path == f"/campaigns/{CAMPAIGN}"
            status, page = status_of(url)
            assert status == 200
            assert "phone-3: no answer" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["file"], "file: is a file"),
        (["--token-file", "none"], "no such file: none"),
        (["--name", "lab.example"], "--name needs a token: add --token-file FILE"),
    ],
)
def test_wrong_arguments(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert run_main("serve", *arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "mplab.dashboard.serving", raising=False)
    assert run_main("serve") == 3
    assert f"pip install 'mplab[{extras.MODULES['uvicorn']}]'" in capsys.readouterr().err


def run_main(*arguments: str) -> int:
    """Run the command ``mplab``, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["mplab", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)
