"""Variables of experiment files: their substitution, their sources, and refused uses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies

from mplab.base.errors import InputError
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.experiments.variables import fill, parse_given, read_given, render_given
from mplab.userfiles.strict.yaml import Document, parse_yaml

Load = Callable[..., Experiment]


def document(text: str) -> Document:
    return parse_yaml(text.encode(), "x.yaml")


def filled(text: str, **given: Any) -> Any:
    read = document(text)
    return fill(read, [read], given).document.data


def refused(text: str, **given: Any) -> str:
    with pytest.raises(InputError) as caught:
        filled(text, **given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("vars: {n: 3}\na: ${n}\n", 3),
        ("vars: {n: 3}\na: '${n}'\n", 3),
        ("vars: {n: 3 s}\na: ${n}\n", "3 s"),
        ("vars: {n: 3}\na: ${n} s\n", "3 s"),
        ("vars: {n: 1.5}\na: ${n} s\n", "1.5 s"),
        ("vars: {n: 1, m: x}\na: ${n}-${m}-${n}\n", "1-x-1"),
        ("vars: {n: [1, 2]}\na: ${n}\n", [1, 2]),
        ("vars: {n: {b: 1}}\na: ${n}\n", {"b": 1}),
        ("vars: {n: true}\na: ${n}\n", True),
        ("vars: {n: 1}\na: [x, {b: '${n}'}]\n", ["x", {"b": 1}]),
        ("vars: {n: 1}\na: $${n} is ${n}\n", "${n} is 1"),
        ("vars: {n: 1}\na: $n ${n} $ {n} $5\n", "$n 1 $ {n} $5"),
        ("a: $${n}\n", "${n}"),
    ],
)
def test_what_takes_its_place(text: str, value: object) -> None:
    assert filled(text)["a"] == value


def test_a_given_value_goes_before_the_file_s() -> None:
    text = "vars: {n: 3, m: 4}\na: ${n}\nb: ${m}\n"
    read = document(text)
    filled = fill(read, [read], {"n": 5})
    assert (filled.document.data["a"], filled.document.data["b"]) == (5, 4)
    assert filled.values == {"n": 5, "m": 4}


def test_one_without_a_value_has_to_be_given() -> None:
    text = "vars: {n: }\na: ${n}\n"
    assert filled(text, n=5)["a"] == 5
    assert refused(text) == "x.yaml:2: a: variable 'n' has no value: give one, --set n=VALUE"


def test_unknown_ones_are_refused_wherever_they_are() -> None:
    assert refused("vars: {size: 1}\na: ${siz}\nb: ${size}\n") == (
        "x.yaml:2: a: unknown variable 'siz'. Did you mean 'size'? Allowed: size"
    )
    assert refused("vars: {size: 1}\na: ${size}\n", sise=1) == (
        "x.yaml: --set sise: unknown variable 'sise'. Did you mean 'size'? Allowed: size"
    )
    assert refused("a: 1\n", n=1) == "x.yaml: --set n: unknown variable 'n'. Allowed: none"


def test_unused_ones_are_refused_unless_a_file_that_is_extended_uses_them() -> None:
    text = "vars: {size: 1}\na: 2\n"
    assert "x.yaml:1: vars.size: variable 'size' is not used" in refused(text)
    own, base = document(text), document("vars: {size: 1}\na: ${size}\n")
    assert fill(own, [own, base], {}).document.data["a"] == 2
    with pytest.raises(InputError, match="--set size: what uses the variable is replaced by a file that extends it"):
        fill(own, [own, base], {"size": 3})


def test_variables_cannot_make_a_small_file_large() -> None:
    long = ", ".join(["1"] * 10_000)
    text = f"vars: {{n: [{long}]}}\na:\n" + "- ${n}\n" * 100
    assert "with its variables larger than 1 MB" in refused(text)


def test_values_on_the_command_line_are_yaml() -> None:
    values = parse_given(["size=1 MB", "often=3", "sizes=[1 kB, 2 kB]", "exact=true", 'text="3"', "until=06:00"])
    assert values == {
        "size": "1 MB",
        "often": 3,
        "sizes": ["1 kB", "2 kB"],
        "exact": True,
        "text": "3",
        "until": "06:00",
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["size"], r"--set size: NAME=VALUE is needed"),
        (["size="], r"--set size=: NAME=VALUE is needed"),
        (["a=1", "a=2"], r"--set a: is given twice"),
        (["a=[1"], r"--set a:\d: not YAML"),
        (["a=&x 1"], r"--set a:1: '&x': anchors and aliases are not allowed"),
        (["a={b: 1, b: 2}"], r"--set a:1: key 'b' is given twice"),
    ],
)
def test_values_on_the_command_line_that_are_none(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_given(texts)


TEXT = strategies.text(strategies.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=("Cs", "Cc")))
SCALARS = strategies.one_of(
    strategies.none(), strategies.booleans(), strategies.integers(-(10**17), 10**17), strategies.just(1.5), TEXT
)
VALUES = strategies.recursive(
    SCALARS, lambda inner: strategies.lists(inner) | strategies.dictionaries(TEXT, inner), max_leaves=5
)


@drawn(strategies.dictionaries(strategies.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True), VALUES))
def test_what_a_run_keeps_is_what_was_given(values: dict[str, Any]) -> None:
    assert parse_yaml(render_given(values), "set.yaml").data == values


def test_a_run_that_was_given_nothing(tmp_path: Path) -> None:
    assert read_given(tmp_path) == {}
    (tmp_path / "set.yaml").write_text("[1]")
    with pytest.raises(InputError, match="found a list: a mapping of variables is needed"):
        read_given(tmp_path)


def test_an_experiment_with_variables(load: Load, catalog: Catalog, tmp_path: Path) -> None:
    keys = {
        "vars": "{sizes: [1 kB, 2 kB], often: 3, name: mptcp}",
        "repetitions": "${often}",
        "scenarios": "\n  - download:\n      sizes: ${sizes}\n",
        "transports": "\n  - ${name}",
        "title": "${often} times ${name}",
    }
    experiment = load(**keys)
    assert experiment.repetitions == 3
    assert experiment.scenario("download").record().parameters["sizes"] == ["1 kB", "2 kB"]
    assert (experiment.title, [use.name for use in experiment.transports]) == ("3 times mptcp", ["mptcp"])
    described = experiment.record()
    assert (described.variables, described.given) == (
        {"sizes": ["1 kB", "2 kB"], "often": 3, "name": "mptcp"},
        (),
    )
    other = load_experiment(tmp_path / "example.yaml", catalog=catalog, given={"often": 5})
    assert (other.repetitions, other.record().given) == (5, ("often",))


def test_mistakes_of_given_values_say_so(load: Load, catalog: Catalog, tmp_path: Path) -> None:
    load(vars="{often: 3}", repetitions="${often}")
    with pytest.raises(InputError, match=r"repetitions: found 0, allowed: 1…1000 \(\$\{often\} is from --set\)"):
        load_experiment(tmp_path / "example.yaml", catalog=catalog, given={"often": 0})
