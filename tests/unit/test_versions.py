"""An app's version compared with the versions for which its selectors were made."""

import pytest

from mplab.drivers.ui.versions import outside


@pytest.mark.parametrize("version", ["380", "380.0.1", "390.2.2", "400.9.9"])
def test_inside(version: str) -> None:
    assert outside(version, "380 … 400") == ""


@pytest.mark.parametrize(
    ("version", "tested", "word"),
    [
        ("379.9", "380 … 400", "older"),
        ("401", "380 … 400", "newer"),
        ("7.71.2", "7.0 … 7.70", "newer"),
        ("2.9", "2.25 … 2.26", "older"),
        ("beta", "1 … 2", "cannot be compared"),
    ],
)
def test_outside(version: str, tested: str, word: str) -> None:
    assert word in outside(version, tested)
