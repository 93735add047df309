"""Foreign text on the terminal: mplab prints no markup, no emoji and no control sequences from it."""

import json

import pytest

from mplab.cli.output import escaped, out, print_json, table

HOSTILE = "[bold]x[/bold] [/b] :x: \x1b]0;owned\x07\x1b[2J\x9b31m \u202eabc"
SEEN = "[bold]x[/bold] [/b] :x: "


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    text = capsys.readouterr().out
    assert not set("\x1b\x07\x9b\u202e") & set(text)
    return text


def test_a_line_is_printed_as_it_is_but_for_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    out.print(HOSTILE, soft_wrap=True)
    text = printed(capsys)
    assert text.startswith(SEEN)
    assert r"\u001b[2J\u009b31m \u202eabc" in text


def test_so_are_the_cells_titles_and_columns_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table(HOSTILE, title=HOSTILE)
    rows.add_row(HOSTILE)
    out.print(rows)
    text = printed(capsys)
    assert text.count(SEEN.strip()) == 3


def test_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({HOSTILE: [HOSTILE, "µ\n\t"]})
    assert json.loads(printed(capsys)) == {HOSTILE: [HOSTILE, "µ\n\t"]}


def test_text_of_our_own_stays_as_it_is() -> None:
    assert escaped("→ 3 µs\n\tč …") == "→ 3 µs\n\tč …"
