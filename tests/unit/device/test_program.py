"""``python -m mplab.device``: its help and what it refuses."""

import pytest

from mplab.device.__main__ import main


def test_the_help_says_what_the_program_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Run an emulated Android device until Ctrl-C" in text
    assert all(option in text for option in ("--phone", "--port", "--serial", "--trust", "--key", "android-13"))


def test_a_phone_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--phone", "android-3"]) == 2
    assert "unknown phone 'android-3'." in capsys.readouterr().err
