"""YAML files are read strictly; every value keeps its line."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.base.errors import InputError
from mplab.userfiles.strict.yaml import Document, load_yaml, parse_yaml, path_text


def document(text: str) -> Document:
    return parse_yaml(text.encode(), "x.yaml")


def refusal(source: bytes) -> str:
    with pytest.raises(InputError) as caught:
        parse_yaml(source, "x.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("010", 10),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("off", "off"),
        ("yes", "yes"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("10 kB", "10 kB"),
        ("2026-01-01", "2026-01-01"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("1" * 5000, "1" * 5000),
        ("12:30", "12:30"),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    parsed = document(f"key: {text}\n").data["key"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_every_key_and_item_knows_its_line() -> None:
    parsed = document("a: 1\nb:\n  - x\n  - c: 2\n    d:\n      3\n")
    assert parsed.data == {"a": 1, "b": ["x", {"c": 2, "d": 3}]}
    assert parsed.line(("a",)) == 1
    assert parsed.line(("b",)) == 2
    assert parsed.line(("b", 0)) == 3
    assert parsed.line(("b", 1, "c")) == 4
    assert parsed.line(("b", 1, "d")) == 5
    assert parsed.line(("b", 1, "d", "deeper")) == 5
    assert parsed.line(("elsewhere",)) == 1


def test_flow_collections_and_a_byte_order_mark() -> None:
    parsed = parse_yaml("\ufeff{a: [1, {b: 2}], c: {}}".encode(), "x.yaml")
    assert parsed.data == {"a": [1, {"b": 2}], "c": {}}


def test_the_first_of_two_equal_keys_counts_and_both_are_named() -> None:
    parsed = document("a: 1\nb: {c: 1}\nb:\n  c: 2\n  c: 3\na: 4\n")
    assert parsed.data == {"a": 1, "b": {"c": 1}}
    lines = [problem.render() for problem in sorted(parsed.problems)]
    assert lines[0] == "x.yaml:3: key 'b' is given twice (first in line 2)"
    assert lines[-1] == "x.yaml:6: key 'a' is given twice (first in line 1)"


def test_paths_read_like_code() -> None:
    assert path_text(("transports", 1, "mptcp", "mode")) == "transports[1].mptcp.mode"
    assert path_text(()) == ""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "x.yaml:1: the file is empty"),
        (b"a:\n\tb: 1\n", "x.yaml:2: a tab in the indentation"),
        (b"a: \xff\n", "x.yaml:1: not UTF-8 text (byte 0xff)"),
        (b"a: 1\nb: \x00\n", "x.yaml:2: control character U+0000"),
        (b"a: &b 1\n", "x.yaml:1: '&b': anchors and aliases are not allowed"),
        (b"a: !!int 1\n", "tags are not allowed"),
        (b"a: " + b"[" * 100_000, "x.yaml:1: more than 20 levels deep"),
        (b"a: 'x\n", "x.yaml:2: not YAML: found unexpected end of stream (while scanning a quoted scalar, which"),
        (b"a: @x\n", "x.yaml:1: not YAML: found character '@'"),
        (b"--- 1\n--- 2\n", "x.yaml:2: a second document"),
        (b'a: "\\ud800"', "x.yaml:1: '\\ud800': half of a surrogate pair is no character"),
        (b"{[a]: 1}", "x.yaml:1: a list as a key"),
        (b"{{a: 1}: 1}", "x.yaml:1: a mapping as a key"),
    ],
)
def test_what_is_refused(source: bytes, message: str) -> None:
    assert message in refusal(source)


@given(st.binary(max_size=200) | st.text(alphabet="ab:-[]{}#&*!|>'\"%@,? \n\t1", max_size=80).map(str.encode))
def test_any_bytes_are_a_document_or_an_input_error(source: bytes) -> None:
    try:
        parsed = parse_yaml(source, "x.yaml")
    except InputError as error:
        assert str(error).startswith("x.yaml:")  # noqa: PT017 - refusing is right as well
    else:
        assert () in parsed.lines


def test_a_file_is_read_with_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: 1\r\n")
    parsed = load_yaml(path)
    assert (parsed.data, parsed.source, parsed.file) == ({"a": 1}, b"a: 1\r\n", str(path))


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "baseline.yaml").touch()
    with pytest.raises(InputError, match=r"base-line\.yaml: no such file\. Did you mean 'baseline\.yaml'\?"):
        load_yaml(tmp_path / "base-line.yaml")
    with pytest.raises(InputError, match=r"no such file$"):
        load_yaml(tmp_path / "nowhere" / "x.yaml")


def test_directories_pipes_and_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory: name a file in it"):
        load_yaml(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        load_yaml(tmp_path / "pipe")
    (tmp_path / "large.yaml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(InputError, match="larger than 1 MB"):
        load_yaml(tmp_path / "large.yaml")


def test_a_path_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_yaml(tmp_path / ("x" * 300))
