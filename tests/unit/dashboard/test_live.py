"""Server-sent events: the current state at once, then each change; the number of viewers is limited."""

import json
import socket
from contextlib import ExitStack
from typing import Any

import pytest

from mplab.base.polling import wait_until
from mplab.dashboard.watch import Watcher
from tests.unit.dashboard.lab import Client, Folders, client


class Stream:
    """A connection to ``/events``."""

    def __init__(self, answers: Client, stack: ExitStack) -> None:
        self._socket = stack.enter_context(socket.create_connection(("127.0.0.1", answers.port), timeout=30))
        self._socket.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        self._file = stack.enter_context(self._socket.makefile("rb"))
        self.status = int(self._file.readline().split()[1])

    def next(self) -> dict[str, Any]:
        """Return the data of the next event."""
        for line in self._file:
            if line.startswith(b"data: "):
                data: dict[str, Any] = json.loads(line[6:])
                return data
        raise AssertionError("the stream has ended")


def status_of_stream(answers: Client) -> int:
    """Open a stream, and return its status."""
    with ExitStack() as stack:
        return Stream(answers, stack).status


def test_a_finished_cell_is_an_event(folders: Folders) -> None:
    run = folders.running()
    with folders.held(run), client(folders.path) as answers, ExitStack() as stack:
        stream = Stream(answers, stack)
        first = stream.next()
        assert first["running"] == [
            {
                "run": run, "state": "running", "done": 6, "total": 20, "cell": "0007-web-mptcp-baseline-r1",
                "step": "probe", "left_s": pytest.approx(1400.0),
            }
        ]  # fmt: skip
        folders.finish_cell(run)
        second = stream.next()
        while second["running"][0]["done"] == 6:  # pages show times, so that the version changes now and then
            second = stream.next()
        assert second["running"][0]["done"] == 7
        assert second["version"] > first["version"]


def test_a_further_viewer_is_told_to_come_back(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.dashboard.live.MOST_CLIENTS", 2)
    with client(folders.path) as answers:
        with ExitStack() as stack:
            streams = [Stream(answers, stack) for _ in range(2)]
            assert [stream.next()["running"] for stream in streams] == [[], []]
            status, headers, _ = answers.get("/events")
            assert (status, headers["retry-after"]) == (503, "30")
            assert answers.get("/")[0] == 200
        assert wait_until(lambda: status_of_stream(answers) == 200, 60, interval_s=0.1)  # it notices closed ones


@pytest.mark.long
def test_a_stream_ends_if_the_folders_cannot_be_read(folders: Folders) -> None:
    def fail(_: Watcher) -> None:
        raise OSError("no folder")

    with client(folders.path) as answers, ExitStack() as stack:
        stream = Stream(answers, stack)
        assert stream.next()["running"] == []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Watcher, "snapshot", fail)
            with pytest.raises(AssertionError, match="the stream has ended"):
                stream.next()
        assert Stream(answers, stack).next()["running"] == []  # browsers try again


def test_events_without_a_body(folders: Folders) -> None:
    with client(folders.path) as answers:
        status, headers, _ = answers.get("/events", "HEAD")
        assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
