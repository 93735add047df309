"""Call the host process from the process inside the lab: to run hooks, and to check intervals for the stop rule.

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
    """The run's end of the channel to the host process."""

    def __init__(self, connection: socket.socket | None) -> None:
        """Use a connected socket; None: there is no host process, and every question fails."""
        self._connection = connection
        self._lines = connection.makefile("rb") if connection is not None else None
        self._asked = 0

    @classmethod
    def received(cls) -> Self:
        """Return a client for the descriptor that this process inherited, if any."""
        number = os.environ.get(VARIABLE, "")
        return cls(socket.socket(fileno=int(number)) if number else None)

    def ask(self, question: str, **about: object) -> Answer:
        """Ask a question and wait for the answer.

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
    """Answers questions of the run inside its lab, until the context ends.

    Args:
        handlers: question → function that answers it.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._own, self._other = socket.socketpair()
        self._thread = Thread(target=self._serve, daemon=True)

    def inherited(self, inherited: Inherited = NOTHING) -> Inherited:
        """Return `inherited` with the channel added, for `mplab.base.enter.lab_process`."""
        number = self._other.fileno()
        return Inherited({**inherited.environment, VARIABLE: str(number)}, (*inherited.descriptors, number))

    def begin(self) -> None:
        """Start to answer. Call when the process inside has been started."""
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
        """Return the answer. An exception becomes an answer with an error, which the process inside reports."""
        try:
            return self._handlers[str(question["question"])](question)
        except MplabError as error:
            return {"error": str(error)}
        except Exception as error:
            return {"error": f"'{question['question']}' could not be answered: {type(error).__name__}: {error}"}
