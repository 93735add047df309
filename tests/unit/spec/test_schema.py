"""The JSON Schemas in docs/schema accept the same files as the reader."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from mplab.base.plugins import PHONES
from mplab.cli.schema import DIRECTORY, schema_files, write_schemas
from mplab.cli.schema import LAB as LAB_SCHEMA
from mplab.userfiles.labs.machines import kinds_of

ROOT = Path(__file__).parents[3]
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.yaml"))
CAMPAIGNS = sorted((ROOT / "experiments" / "campaigns").glob("*.yaml"))
LINKS = sorted((ROOT / "router-configs" / "links").glob("*.yaml"))
ROUTER = {"host": "192.168.1.1", "interface": "phy0-ap0", "dead_man": "20 s"}
LAB = {
    "mplab": 1,
    "name": "bench",
    "routers": {"wifi": ROUTER},
    "servers": {"proxy": {"interface": "eth0"}},
    "phones": {"one": {"wifi": {"router": "wifi", "mac": "02:00:00:00:00:01"}, "lte": {"server": "proxy"}}},
}


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads(schema_files()[name])
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def read(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)


@pytest.mark.parametrize("name", sorted(schema_files().keys() - {LAB_SCHEMA}))
def test_committed_schemas_are_up_to_date(name: str) -> None:
    committed = (DIRECTORY / name).read_text(encoding="utf-8")
    assert committed == schema_files()[name], "run 'python -m mplab.cli.schema'"


def test_the_schema_of_lab_files_has_every_kind_that_is_installed() -> None:
    schema = schema_files()[LAB_SCHEMA]
    assert [name for name in (*kinds_of("routers"), *kinds_of("servers"), *PHONES) if f'"{name}"' not in schema] == []


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "schema").glob("*.json")), ids=lambda file: file.name)
def test_a_schema_has_the_name_of_its_file(file: Path) -> None:
    assert json.loads(file.read_text(encoding="utf-8"))["$id"] == f"https://mplab.invalid/{file.name}"


def test_schemas_can_be_written(tmp_path: Path) -> None:
    write_schemas(tmp_path / "schema")
    assert {path.name for path in (tmp_path / "schema").iterdir()} == set(schema_files())


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.name)
def test_experiments_of_the_product_are_valid(path: Path) -> None:
    validator("experiment.schema.json").validate(read(path))


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.name)
def test_campaigns_of_the_product_are_valid(path: Path) -> None:
    validator("campaign.schema.json").validate(read(path))


@pytest.mark.parametrize("path", LINKS, ids=lambda path: path.name)
def test_links_of_the_product_are_valid(path: Path) -> None:
    validator("link.schema.json").validate(read(path))


@pytest.mark.parametrize(
    "experiment",
    [
        {"extends": "base.yaml"},
        {"extends": "base.yaml", "repetitions": "${often}", "vars": {"often": 3, "sizes": ["1 kB"], "none": None}},
        {"extends": "base.yaml", "tolerance": {"rtt": "${rtt} %"}, "tags": "${tags}", "capture": "${what}"},
    ],
)
def test_what_is_inherited_and_variables_are_valid(experiment: dict[str, Any]) -> None:
    check = validator("experiment.schema.json")
    assert check.is_valid({"mplab": 1, "name": "x", **experiment})
    del experiment["extends"]
    assert not check.is_valid({"mplab": 1, "name": "x", **experiment})
    assert not check.is_valid({"mplab": 1, "name": "x", "extends": "base.yaml", "vars": {"My-Own": 3}})


@pytest.mark.parametrize(
    "change",
    [
        {"mplab": 2},
        {"repetitions": 0},
        {"cell_timeout": 120},
        {"cell_timeout": "120 sec"},
        {"name": "Demo"},
        {"colour": "red"},
        {"transports": []},
        {"scenarios": [{"web": {}, "download": {}}]},
        {"links": [{"name": "mine"}]},
        {"tolerance": {"rtt": "ten %"}},
    ],
)
def test_wrong_experiments_are_invalid(change: dict[str, Any]) -> None:
    good = read(ROOT / "experiments" / "demo.yaml")
    check = validator("experiment.schema.json")
    assert check.is_valid(good)
    assert not check.is_valid({**good, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"mplab": 2},
        {"router": {}},
        {"routers": {"WiFi": ROUTER}},
        {"routers": {"wifi": {"host": "192.168.1.1"}}},
        {"routers": {"wifi": {**ROUTER, "interface": "phy0 ap0"}}},
        {"routers": {"wifi": {**ROUTER, "dead_man": 20}}},
        {"routers": {"wifi": {**ROUTER, "radio": {"channel": 0}}}},
        {"phones": {"one": {"wifi": {"at": "home"}}}},
    ],
)
def test_wrong_labs_are_invalid(change: dict[str, Any]) -> None:
    check = validator("lab.schema.json")
    check.validate(LAB)
    assert not check.is_valid({**LAB, **change})
