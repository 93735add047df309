"""Registries of plug-ins: both forms of entry points, and the message for a broken distribution."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mplab.base.drivers import Drivers
from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.plugins import REGISTRIES, SCENARIOS, TRANSPORTS, Registry
from mplab.lab.doctor import examine
from tests.foreign import Foreign, installed

GROUP = "mplab.tests"


@dataclass(frozen=True)
class Toy:
    """A driver."""

    name: str


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    with installed(tmp_path / "foreign") as plugins:
        yield plugins


@pytest.fixture
def registry() -> Registry:
    return Registry(GROUP, "toy", "driver")


def module(foreign: Foreign, name: str, text: str) -> None:
    (foreign.folder / f"{name}.py").write_text(text)


def test_an_entry_point_can_name_one_object(foreign: Foreign, registry: Registry) -> None:
    module(foreign, "plugin_of_one", "OURS = 'the object'\n")
    foreign.register(GROUP, "one", "plugin_of_one:OURS")
    assert list(registry) == ["one"]
    assert registry["one"].distribution == "one 1.0"
    assert registry.load("one", "DRIVER") == "the object"


def test_an_entry_point_can_name_a_package_of_plugins(foreign: Foreign, registry: Registry) -> None:
    folder = foreign.add(GROUP, "two", {"driver": "DRIVER = 'two'\n", "more": "MORE = 1\n"})
    for name, member in (("with_underscore", "driver"), ("no_plugin", "other")):
        (folder.parent / name).mkdir()
        (folder.parent / name / f"{member}.py").write_text("DRIVER = 'underscore'\n")
    assert list(registry) == ["two", "with-underscore"]
    assert registry.load("two", "DRIVER") == "two"
    assert registry.load("with-underscore", "DRIVER") == "underscore"
    assert registry["two"].load("MORE", "more") == 1
    assert registry["two"].folder() == folder
    assert registry["two"].sources() == [folder]
    assert registry["two"].has("more")
    assert not registry["two"].has("nothing")


def test_a_name_that_two_distributions_register_is_refused(foreign: Foreign, registry: Registry) -> None:
    module(foreign, "plugin_twice", "OURS = 1\n")
    foreign.register(GROUP, "same", "plugin_twice:OURS")
    other = foreign.folder / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text(f"[{GROUP}]\nsame = plugin_twice:OURS\n")
    with pytest.raises(InputError, match=r"toy same: registered twice, by .*(same|other) 1\.0 .* Remove one of them"):
        list(registry)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import no_such_module\n", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(\n", "cannot be imported: SyntaxError"),
        ("raise RuntimeError('no')\n", "cannot be imported: RuntimeError: no"),
        ("OTHER = 1\n", "has no DRIVER"),
    ],
)
def test_a_broken_plugin_is_listed_and_explained_when_it_is_loaded(
    foreign: Foreign, registry: Registry, text: str, problem: str
) -> None:
    foreign.add(GROUP, "broken", {"driver": text})
    assert "broken" in registry
    with pytest.raises(LabNotReadyError, match=rf"toy broken: broken_\d+\.broken\.driver \(of broken 1\.0\) {problem}"):
        registry.load("broken", "DRIVER")


def test_an_object_that_the_module_lacks_is_named(foreign: Foreign, registry: Registry) -> None:
    module(foreign, "plugin_without", "")
    foreign.register(GROUP, "without", "plugin_without:OURS")
    with pytest.raises(LabNotReadyError, match=r"toy without: plugin_without \(of without 1\.0\) has no OURS"):
        registry.load("without", "DRIVER")


@pytest.mark.parametrize("value", ["no_such_package", "no.such.package", "plugin_is_a_module", "plugin_broken.inner"])
def test_a_package_that_is_not_there_is_named_when_it_is_loaded(
    foreign: Foreign, registry: Registry, value: str
) -> None:
    module(foreign, "plugin_is_a_module", "")
    module(foreign, "plugin_broken", "1 / 0\n")
    foreign.register(GROUP, "lost", value)
    foreign.add(GROUP, "good", {"driver": "DRIVER = 1\n"})
    assert list(registry) == ["good", "lost"]
    assert registry.load("good", "DRIVER") == 1
    with pytest.raises(LabNotReadyError, match=rf"toy lost: {value}\.driver \(of lost 1\.0\) cannot be imported: "):
        registry.load("lost", "DRIVER")
    if not value.startswith("plugin_is"):
        assert registry["lost"].sources() == []


def test_where_a_group_has_no_member_each_module_of_a_package_is_a_plugin(foreign: Foreign) -> None:
    registry = Registry(GROUP, "toy", "")
    path = foreign.module(GROUP, "one", "DRIVER = 'one'\n")
    (path.parent / "the_other.py").write_text("DRIVER = 'other'\n")
    (path.parent / "_helper.py").write_text("")
    (path.parent / "inner").mkdir()
    assert list(registry) == ["one", "the-other"]
    assert registry.load("the-other", "DRIVER") == "other"
    assert registry["one"].sources() == [path]
    assert registry["one"].foreign
    assert not SCENARIOS["download"].foreign


def test_an_object_of_a_module_has_no_folder(foreign: Foreign, registry: Registry) -> None:
    module(foreign, "plugin_of_three", "OURS = 3\n")
    foreign.register(GROUP, "three", "plugin_of_three:OURS")
    with pytest.raises(LabNotReadyError, match=r"toy three: plugin_of_three \(of three 1\.0\) is no package"):
        registry["three"].folder()


def test_an_unknown_name_is_answered_with_those_that_there_are(foreign: Foreign, registry: Registry) -> None:
    foreign.add(GROUP, "tunnel", {"driver": ""})
    with pytest.raises(InputError, match=r"unknown toy 'tunel'\. Did you mean 'tunnel'\? Allowed: tunnel"):
        registry["tunel"]
    with pytest.raises(InputError, match="unknown toy 'tunel'"):
        registry.load("tunel", "DRIVER")
    assert "tunel" not in registry


def test_what_is_installed_later_is_seen_after_a_refresh(foreign: Foreign, registry: Registry) -> None:
    assert list(registry) == []
    foreign.add(GROUP, "later", {"driver": "DRIVER = 1\n"})
    assert list(registry) == []
    registry.refresh()
    assert list(registry) == ["later"]


def test_foreign_plugins_are_there_next_to_those_of_mplab_and_gone_with_their_distribution(tmp_path: Path) -> None:
    before = list(SCENARIOS)
    with installed(tmp_path / "foreign") as foreign:
        foreign.scenario("toy", "METRICS = ()\n")
        assert list(SCENARIOS) == sorted([*before, "toy"])
        assert SCENARIOS["toy"].distribution == "toy 1.0"
        assert SCENARIOS["download"].distribution.startswith("mplab ")
    assert list(SCENARIOS) == before


def test_every_group_is_one_registry() -> None:
    assert len({registry.group for registry in REGISTRIES}) == len(REGISTRIES)


def test_those_that_cannot_be_imported_are_left_out_when_all_are_loaded(foreign: Foreign) -> None:
    foreign.add("mplab.transports", "broken", {"driver": "import no_such_module\n"})
    assert "broken" in TRANSPORTS
    loaded = TRANSPORTS.importable(lambda name: TRANSPORTS.load(name, "DRIVER"))
    assert "broken" not in loaded
    assert "mptcp" in loaded


def test_doctor_loads_every_kind_of_driver(foreign: Foreign, tmp_path: Path) -> None:
    for group, name in (("shapers", "box"), ("phones", "fairphone"), ("proxies", "rented"), ("services", "chat")):
        foreign.register(f"mplab.{group}", name, "no_such_module:DRIVER")
    levels = {finding.name: finding.level for finding in examine(tmp_path)}
    broken = [levels[name] for name in ("shaper box", "phone fairphone", "proxy rented", "service chat")]
    assert broken == ["missing"] * 4
    assert {"shaper linkem", "proxy"} <= levels.keys(), "what a lab without a lab file uses is asked"


def test_a_driver_has_the_class_and_the_name_that_it_is_registered_by(foreign: Foreign) -> None:
    drivers = Drivers(Registry(GROUP, "toy", "driver"), Toy)
    module(foreign, "toys", f"from {Toy.__module__} import Toy\nBALL, NAMELESS, NUMBER = Toy('ball'), Toy(''), 1\n")
    for name, attribute in (("ball", "BALL"), ("cube", "BALL"), ("none", "NAMELESS"), ("number", "NUMBER")):
        foreign.register(GROUP, name, f"toys:{attribute}")
    assert drivers["ball"].name == "ball"
    assert list(drivers.importable()) == ["ball"]
    for name, message in (
        ("cube", "toy cube: its driver is called ball. Register it by that name"),
        ("none", "toy none: its driver needs 'name = \"none\"'"),
        ("number", "toy number: NUMBER of toys is of type int. Derive its class from "),
    ):
        with pytest.raises(LabNotReadyError, match=re.escape(message)):
            drivers.load(name)
    with pytest.raises(InputError, match="unknown toy 'bal'"):
        drivers.load("bal")
    with pytest.raises(KeyError):
        drivers["bal"]
