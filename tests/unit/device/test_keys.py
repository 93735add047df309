"""Names of keys, from the words of ``input keyevent`` and from key codes."""

import pytest

from mplab.device.screen.hands import key_name


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("26", "POWER"),
        ("KEYCODE_POWER", "POWER"),
        ("power", "POWER"),
        ("7", "0"),
        ("16", "9"),
        ("29", "A"),
        ("KEYCODE_7", "7"),
    ],
)
def test_a_code_and_a_name_are_the_same_key(word: str, name: str) -> None:
    assert key_name(word) == name


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(ValueError, match="no key has the number 1"):
        key_name("1")
