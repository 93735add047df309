"""Questions of a run inside its lab, and answers of the process outside."""

import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import closing

import pytest

from mplab.base.errors import InputError, MplabError
from mplab.run.hostrpc import Answer, HostClient, HostServer

INSIDE = """
import os, sys
from mplab.base.errors import MplabError
from mplab.run.hostrpc import HostClient
outside = HostClient.received()
for what in sys.argv[1:]:
    try:
        print(outside.ask(what, text="ä\\n"))
    except MplabError as error:
        print("error:", error)
"""


def inside(answers: HostServer, *questions: str) -> list[str]:
    """Return the lines of a process that asks `questions`."""
    inherited = answers.inherited()
    process = subprocess.Popen(
        [sys.executable, "-c", INSIDE, *questions],
        env={"PYTHONPATH": ":".join(sys.path), **inherited.environment},
        pass_fds=inherited.descriptors,
        stdout=subprocess.PIPE,
        text=True,
    )
    answers.begin()
    return process.communicate(timeout=60)[0].splitlines()


def echo(asked: Mapping[str, object]) -> Answer:
    return {"text": asked["text"]}


def refuse(_asked: Mapping[str, object]) -> Answer:
    raise InputError("so not")


def fail(_asked: Mapping[str, object]) -> Answer:
    raise ZeroDivisionError("by mistake")


def test_questions_and_answers() -> None:
    with HostServer({"echo": echo, "refuse": refuse, "fail": fail}) as answers:
        assert inside(answers, "echo", "refuse", "fail", "unknown", "echo") == [
            "{'text': 'ä\\n'}",
            "error: so not",
            "error: 'fail' could not be answered: ZeroDivisionError: by mistake",
            "error: 'unknown' could not be answered: KeyError: 'unknown'",
            "{'text': 'ä\\n'}",
        ]


def test_nobody_is_there() -> None:
    with pytest.raises(MplabError, match="no host process answers 'echo'"):
        HostClient.received().ask("echo")


def test_the_answer_to_a_question_that_nobody_waits_for_is_passed_over() -> None:
    answers = HostServer({"echo": echo})
    with answers:
        connection = answers._other.dup()
        connection.sendall(b'{"question": "echo", "number": 0, "text": "old"}\n')
        with closing(HostClient(connection)) as outside:
            answers.begin()
            assert outside.ask("echo", text="new") == {"text": "new"}


def test_whoever_asks_is_told_when_the_process_outside_is_gone() -> None:
    answers = HostServer({"echo": echo})
    with closing(HostClient(answers._other.dup())) as outside:
        answers.begin()
        with answers:
            pass
        with pytest.raises(MplabError, match="ended before it answered 'echo'"):
            outside.ask("echo", text="x")


def test_nothing_of_it_is_left() -> None:
    before = threading.active_count()
    with HostServer({"echo": echo}) as answers:
        inside(answers, "echo")
    assert threading.active_count() == before
    with HostServer({}):
        pass  # its thread was never started
