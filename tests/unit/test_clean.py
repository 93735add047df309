"""Apps are seen to begin clean, or said to have been kept."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.drivers.ui.protocol import AppState
from mplab.drivers.ui.state import proved_clean


class SignedIn:
    """An app of which nobody can see what it has kept."""

    def state(self) -> AppState:
        raise StepError("what an app has kept cannot be seen")


class Used:
    """An app that has kept a cookie."""

    def state(self) -> AppState:
        return AppState(1, 0, 0, 0, 0)


def opened(ui: Any, *, fresh: bool) -> tuple[Any, list[dict[str, Any]]]:
    seen: list[dict[str, Any]] = []

    @contextmanager
    def factory(*, switches: Sequence[str] = (), sound: str = "") -> Iterator[Any]:
        del switches, sound
        yield ui

    proved = proved_clean(factory, device="phone", observe=lambda event, **fields: seen.append(fields), fresh=fresh)
    return proved, seen


def test_an_app_that_stays_signed_in_is_not_asked() -> None:
    proved, seen = opened(SignedIn(), fresh=False)
    with proved() as ui:
        assert isinstance(ui, SignedIn)
    assert seen == [{"device": "phone", "clean": False, "kept": True}]


def test_an_app_that_should_be_clean_and_is_not() -> None:
    proved, seen = opened(Used(), fresh=True)
    with pytest.raises(StepError, match="does not begin clean"), proved():
        pytest.fail("it was opened")
    assert seen[0]["cookies"] == 1
