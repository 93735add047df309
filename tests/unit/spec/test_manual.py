"""docs/experiment-files.md names every key with its default, and its examples are good files."""

import re
from pathlib import Path

import pytest

from orchestrator.spec import Catalog, load_link
from orchestrator.spec.experiment import ExperimentFile
from orchestrator.spec.link import LinkFile, PathFile
from orchestrator.spec.schema import experiment_schema, link_schema
from orchestrator.spec.yaml import parse_yaml

MANUAL = (Path(__file__).parents[3] / "docs" / "experiment-files.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", MANUAL, re.DOTALL)


def table(heading: str) -> dict[str, str]:
    """Key → default, of the table whose first column has that heading."""
    lines = MANUAL.partition(f"| {heading} | type | default |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {key: row[2].strip("`") for row in rows for key in re.findall(r"`(\w+)`", row[0])}


@pytest.mark.parametrize(
    ("heading", "model"), [("key", ExperimentFile), ("key of a path", PathFile)], ids=["experiment", "path"]
)
def test_every_key_is_in_the_manual(heading: str, model: type[ExperimentFile | PathFile]) -> None:
    assert list(table(heading)) == list(model.model_fields)


def test_every_key_of_a_link_file_is_in_the_manual() -> None:
    assert all(f"`{key}`" in MANUAL.partition("## Keys of a link condition")[2] for key in LinkFile.model_fields)


def test_defaults_are_those_of_the_manual() -> None:
    said = {**table("key"), **table("key of a path")}
    schema = {**experiment_schema()["properties"], **link_schema()["$defs"]["PathFile"]["properties"]}
    required = {key for key, default in said.items() if default == "required"}
    assert required == {key for key, entry in schema.items() if "default" not in entry}
    for key in said.keys() - required - {"title", "tolerance"}:
        assert said[key] == str(schema[key]["default"]), key


def test_examples_are_yaml_that_mplab_reads() -> None:
    assert len(EXAMPLES) == 5
    for example in EXAMPLES[:-1]:
        assert parse_yaml(example.encode(), "manual").problems == ()


def test_the_first_example_is_the_demo() -> None:
    demo = parse_yaml(EXAMPLES[0].encode(), "manual").data
    committed = (Path(__file__).parents[3] / "experiments" / "demo.yaml").read_bytes()
    assert demo.items() <= parse_yaml(committed, "demo").data.items()


def test_the_link_of_the_manual_is_good(catalog: Catalog) -> None:
    (catalog.links_dir / "manual.yaml").write_text(EXAMPLES[3], encoding="utf-8")
    assert load_link("manual", catalog.links_dir).title == "Typical WiFi and LTE"
