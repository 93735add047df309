"""Apps start clean, or mplab reports that their state was kept."""

from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.drivers.ui.protocol import AppState
from mplab.drivers.ui.state import prove_clean


class SignedIn:
    """An app whose stored data cannot be read."""

    def state(self) -> AppState:
        raise StepError("what an app has kept cannot be seen")


class Used:
    """An app with a stored cookie."""

    def state(self) -> AppState:
        return AppState(1, 0, 0, 0, 0)


def prove(ui: Any, seen: list[dict[str, Any]], *, kept: bool) -> None:
    prove_clean(ui, device="phone", observe=lambda event, **fields: seen.append(fields), kept=kept)


def test_an_app_that_stays_signed_in_is_not_asked() -> None:
    seen: list[dict[str, Any]] = []
    prove(SignedIn(), seen, kept=True)
    assert seen == [{"device": "phone", "clean": False, "kept": True}]


def test_an_app_that_should_be_clean_and_is_not() -> None:
    seen: list[dict[str, Any]] = []
    with pytest.raises(StepError, match="does not begin clean"):
        prove(Used(), seen, kept=False)
    assert seen[0]["cookies"] == 1
