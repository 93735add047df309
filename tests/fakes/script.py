"""Records every call to a part of the fake lab and carries out the faults that a test has scripted for it."""

from collections import defaultdict, deque
from collections.abc import Callable
from threading import Lock

Deed = BaseException | Callable[[], object] | None
"""An error that the call raises, or a function that it calls; None: the call succeeds."""


class Script:
    """The calls of a test, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._deeds: defaultdict[str, deque[Deed]] = defaultdict(deque)
        self._always: dict[str, Deed] = {}
        self._lock = Lock()

    def at(self, call: str, *deeds: Deed) -> None:
        """Assign `deeds` to the next calls named `call`, one each; further calls succeed."""
        self._deeds[call].extend(deeds)

    def always(self, call: str, deed: Deed) -> None:
        """Assign `deed` to every call named `call`."""
        self._always[call] = deed

    def __call__(self, call: str) -> None:
        """Record a call and carry out its deed.

        Raises:
            BaseException: the deed, if that is an exception.
        """
        with self._lock:
            self.calls.append(call)
            queue = self._deeds[call]
            deed = queue.popleft() if queue else self._always.get(call)
        if isinstance(deed, BaseException):
            raise deed
        if deed is not None:
            deed()

    def of(self, *parts: str) -> list[str]:
        """Return the calls of some parts (``shaper``) or single calls (``shaper.apply``), in order."""
        return [call for call in self.calls if call in parts or call.partition(".")[0] in parts]
