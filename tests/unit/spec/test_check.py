"""Errors that pydantic finds are reported in the words of the file."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from mplab.base.errors import InputError
from mplab.userfiles.strict.check import Checker, raise_lines
from mplab.userfiles.strict.yaml import parse_yaml


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    speed: float = 1.0


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: Literal["all"] | Annotated[int, Field(ge=1)] = "all"
    share: float = Field(0.5, gt=0, lt=1)
    text: str = Field("abc", min_length=2, max_length=4)
    inner: Inner | None = None
    many: tuple[Inner, ...] = Field((), max_length=2)
    by_name: dict[str, Inner] = {}
    flag: bool = False


def problems(text: str, model: type[BaseModel] = Outer) -> list[str]:
    document = parse_yaml(text.encode(), "f")
    checker = Checker(document)
    checker.model(model, document.data)
    return checker.lines()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("count: some", "f:1: count: found 'some'. Allowed: all; or found 'some', a whole number is needed"),
        ("share: 1", "f:1: share: found 1, must be less than 1"),
        ("share: '0.2'", "f:1: share: found '0.2' (text), a number is needed"),
        ("text: a", "f:1: text: found 1: at least 2 needed"),
        ("text: abcde", "f:1: text: found 5: at most 4 needed"),
        ("text: 5", "f:1: text: found 5, text is needed"),
        ("flag: yes", "f:1: flag: found 'yes', true or false is needed"),
        ("flag: 1", "f:1: flag: found 1, true or false is needed"),
        ("inner:\n  sped: 2", "f:2: inner: unknown key 'sped'. Did you mean 'speed'? Allowed: speed"),
        ("many:\n  - speed: 1\n  - sped: 2", "f:3: many[1]: unknown key 'sped'. Did you mean 'speed'? Allowed: speed"),
        ("by_name:\n  x: {sped: 2}", "f:2: by_name.x: unknown key 'sped'. Did you mean 'speed'? Allowed: speed"),
        ("many: [{}, {}, {}]", "f:1: many: found 3: at most 2 needed"),
        ("many: 3", "f:1: many: found 3, a list is needed"),
    ],
)
def test_each_kind_of_problem(text: str, line: str) -> None:
    assert problems(text) == [line]


def test_good_data_gives_the_model() -> None:
    document = parse_yaml(b"count: 3\nmany: [{speed: 2}]\n", "f")
    model = Checker(document).model(Outer, document.data)
    assert model == Outer.model_validate({"count": 3, "many": [{"speed": 2.0}]})


def test_all_problems_are_raised_at_once() -> None:
    checker = Checker(parse_yaml(b"a: 1\nb: 2\n", "f"))
    checker.raise_problems()
    checker.add(("b",), "second")
    checker.add(("a",), "first")
    with pytest.raises(InputError, match=r"^f:1: a: first\nf:2: b: second$"):
        checker.raise_problems()


def test_a_file_with_countless_problems_does_not_flood_the_screen() -> None:
    lines = problems("\n".join(f"key{number}: 1" for number in range(60)))
    assert len(lines) == 60
    with pytest.raises(InputError) as caught:
        raise_lines(lines)
    assert str(caught.value).splitlines()[50:] == ["… and 10 more"]
