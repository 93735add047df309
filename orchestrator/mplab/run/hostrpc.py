"""Let the process inside the lab ask the host process to run hooks, and to check the intervals of the stop rule.

The channel is a pair of sockets. A question and its answer are one line of JSON each. A thread of the host process
answers one question after the other.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Self

from mplab.base.enter import NOTHING, Inherited
from mplab.base.errors import MplabError
from mplab.base.files import Closing

VARIABLE = "MPLAB_OUTSIDE"
"""Environment variable with the file descriptor of the channel."""

Answer = dict[str, object]
Handler = Callable[[Mapping[str, object]], Answer]


class HostClient:
    """The channel's end in the process inside the lab: asks the host process questions."""

    def __init__(self, connection: socket.socket | None) -> None:
        """Use a connected socket; None: there is no host process, and every question fails."""
        self._connection = connection
        self._lines = connection.makefile("rb") if connection is not None else None
        self._asked = 0

    @classmethod
    def received(cls) -> Self:
        """Return a client for the channel that this process inherited; without one, every question fails."""
        number = os.environ.get(VARIABLE, "")
        return cls(socket.socket(fileno=int(number)) if number else None)

    def ask(self, question: str, **about: object) -> Answer:
        """Send a question to the host process; wait for its answer and return it.

        Raises:
            MplabError: there is no host process, it has ended, or it answered with an error.
        """
        if self._connection is None or self._lines is None:
            raise MplabError(f"no host process answers '{question}': start runs with 'mplab run'")
        self._asked += 1
        line = json.dumps({"question": question, "number": self._asked, **about}) + "\n"
        with suppress(OSError):
            self._connection.sendall(line.encode())
        while reply := self._lines.readline():
            answer: Answer = json.loads(reply)
            if answer.pop("number") == self._asked:  # skip the answer to a question whose asker was interrupted
                if "error" in answer:
                    raise MplabError(str(answer["error"]))
                return answer
        raise MplabError(f"the host process ended before it answered '{question}'")

    def close(self) -> None:
        """Close the channel."""
        if self._connection is not None and self._lines is not None:
            self._lines.close()
            self._connection.close()


class HostServer(Closing):
    """The channel's end in the host process: answers questions from inside the lab until the context ends.

    Args:
        handlers: question → function that answers it.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._own, self._other = socket.socketpair()
        self._thread = Thread(target=self._serve, daemon=True)

    def inherited(self, inherited: Inherited = NOTHING) -> Inherited:
        """Return `inherited` with the channel's descriptor added, for `mplab.base.enter.lab_process`."""
        number = self._other.fileno()
        return Inherited({**inherited.environment, VARIABLE: str(number)}, (*inherited.descriptors, number))

    def begin(self) -> None:
        """Start to answer questions. Call it when the process inside the lab has been started."""
        self._other.close()
        self._thread.start()

    def close(self) -> None:
        """Stop answering, and close the channel."""
        with suppress(OSError):
            self._own.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join()
        self._own.close()
        self._other.close()

    def _serve(self) -> None:
        with suppress(OSError), self._own.makefile("rb") as questions:
            for line in questions:
                question = json.loads(line)
                self._own.sendall(
                    (json.dumps({**self._answer(question), "number": question["number"]}) + "\n").encode()
                )

    def _answer(self, question: Mapping[str, object]) -> Answer:
        """Answer a question. An exception becomes the answer's ``error``, which `HostClient.ask` raises."""
        try:
            return self._handlers[str(question["question"])](question)
        except MplabError as error:
            return {"error": str(error)}
        except Exception as error:
            return {"error": f"'{question['question']}' could not be answered: {type(error).__name__}: {error}"}
