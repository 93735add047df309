"""Calls from the run inside its lab to the process on the host: hooks, and whether intervals are narrow enough.

One pair of sockets; a line of JSON each way for each question. The process outside answers in a thread, one question
after the other.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self

from mplab.base.enter import NOTHING, Inherited
from mplab.base.errors import MplabError

VARIABLE = "MPLAB_OUTSIDE"
"""Environment variable with the number of the descriptor that questions are asked over."""

Answer = dict[str, object]
Handler = Callable[[Mapping[str, object]], Answer]


class HostClient:
    """The process outside, as the run inside sees it."""

    def __init__(self, connection: socket.socket | None) -> None:
        """`connection` None: nobody is there to be asked."""
        self._connection = connection
        self._lines = connection.makefile("rb") if connection is not None else None
        self._asked = 0

    @classmethod
    def received(cls) -> Self:
        """What this process was given."""
        number = os.environ.get(VARIABLE, "")
        return cls(socket.socket(fileno=int(number)) if number else None)

    def ask(self, question: str, **about: object) -> Answer:
        """Ask, and wait for the answer.

        Raises:
            MplabError: nobody answers, or the answer could not be found.
        """
        if self._connection is None or self._lines is None:
            raise MplabError(f"nobody outside of the lab answers '{question}': runs are started by 'mplab run'")
        self._asked += 1
        line = json.dumps({"question": question, "number": self._asked, **about}) + "\n"
        with suppress(OSError):
            self._connection.sendall(line.encode())
        while said := self._lines.readline():
            answer: Answer = json.loads(said)
            if answer.pop("number") == self._asked:  # not that of a question whose asker was interrupted
                if "error" in answer:
                    raise MplabError(str(answer["error"]))
                return answer
        raise MplabError(f"the process outside of the lab has gone before it answered '{question}'")

    def close(self) -> None:
        """Ask no more."""
        if self._connection is not None and self._lines is not None:
            self._lines.close()
            self._connection.close()


class HostServer:
    """Answers the run inside, for as long as the context.

    Args:
        handlers: question → what answers it.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._own, self._other = socket.socketpair()
        self._thread = Thread(target=self._serve, daemon=True)

    def inherited(self, given: Inherited = NOTHING) -> Inherited:
        """For `mplab.base.enter.lab_process`: `given`, and what the process inside needs to ask."""
        number = self._other.fileno()
        return Inherited({**given.environment, VARIABLE: str(number)}, (*given.descriptors, number))

    def begin(self) -> None:
        """The process inside is there: answer it."""
        self._other.close()
        self._thread.start()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Answer no more."""
        with suppress(OSError):
            self._own.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join()
        self._own.close()
        self._other.close()

    def _serve(self) -> None:
        with suppress(OSError), self._own.makefile("rb") as questions:
            for line in questions:
                asked = json.loads(line)
                self._own.sendall((json.dumps({**self._answer(asked), "number": asked["number"]}) + "\n").encode())

    def _answer(self, asked: Mapping[str, object]) -> Answer:
        """Whatever goes wrong is said to who asked, who says it to the user."""
        try:
            return self._handlers[str(asked["question"])](asked)
        except MplabError as error:
            return {"error": str(error)}
        except Exception as error:
            return {"error": f"'{asked['question']}' could not be answered: {type(error).__name__}: {error}"}
