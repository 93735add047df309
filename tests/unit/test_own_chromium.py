"""mplab's own Chromium is driven over a connection that no other program can reach, and errors name what happened."""

import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path

import pytest

from mplab.base.browser.own import own_chromium
from mplab.base.browser.session import BrowserSession, Pipe, SessionError
from mplab.base.errors import StepError
from mplab.base.programs import CHROMIUM, Program

TIMEOUT_S = 60.0


def browsers() -> list[int]:
    """Return the processes of the browsers that this process has started."""
    processes = {int(path.name): facts(path) for path in Path("/proc").iterdir() if path.name.isdecimal()}
    started = {pid for pid, (parent, session) in processes.items() if parent == os.getpid() and session == pid}
    return [pid for pid, (_, session) in processes.items() if session in started]


def facts(process: Path) -> tuple[int, int]:
    """Return parent and session of a process; (0, 0): it has ended."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return int(fields[1]), int(fields[3])


def listening(pids: Iterable[int]) -> set[str]:
    """Return the listening TCP sockets of processes."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    sockets = {f"socket:[{fields[9]}]" for fields in lines if fields[3] == "0A"}
    return sockets & {str(file) for pid in pids for file in links(Path(f"/proc/{pid}/fd"))}


def links(folder: Path) -> list[Path]:
    found = []
    for path in folder.iterdir():
        try:
            found.append(path.readlink())
        except OSError:  # it was closed
            continue
    return found


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM.find() is None, reason="no Chromium")
def test_the_browser_opens_no_port_and_ends_with_the_context() -> None:
    with own_chromium() as browser, browser.tab(timeout_s=TIMEOUT_S) as tab:
        tab.open("data:text/html,<h1>here</h1>", timeout_s=TIMEOUT_S)
        assert tab.evaluate("return document.querySelector('h1').textContent") == "here"
        pids = browsers()
        assert len(pids) > 1
        assert listening(pids) == set()
        with socket.create_server(("127.0.0.1", 0)):
            assert len(listening([os.getpid()])) >= 1
    assert not set(browsers()) & set(pids)


def test_a_browser_that_does_not_start_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho last words\n")
    program.chmod(0o700)
    monkeypatch.setattr(Program, "path", lambda _: program)
    with pytest.raises(StepError, match=r"Chromium did not start: .*: last words"), own_chromium():
        pass


def test_messages_of_a_pipe_arrive_whole() -> None:
    ours, theirs = socket.socketpair()
    with BrowserSession(Pipe(ours)) as session, theirs:
        parts = [b'{"method": "Page.x", "params"', b': {}}\0{"id": 1, "res', b'ult": {"a": 2}}\0']
        for part in parts:
            theirs.sendall(part)
        assert session.command("Some.method", timeout_s=TIMEOUT_S, word="ü") == {"a": 2}
        assert session.events() == [{"method": "Page.x", "params": {}}]
        sent = theirs.recv(1000)
        assert sent.endswith(b"\0")
        assert json.loads(sent[:-1]) == {"id": 1, "method": "Some.method", "params": {"word": "ü"}}
        with pytest.raises(SessionError, match=r"no answer within 0\.1 s"):
            session.command("Some.method", timeout_s=0.1)
        theirs.close()
        with pytest.raises(SessionError, match="connection"):
            session.command("Some.method", timeout_s=TIMEOUT_S)
