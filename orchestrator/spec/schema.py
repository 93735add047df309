"""JSON Schemas of experiment files and link conditions, for editors (docs/schema/).

``python -m orchestrator.spec.schema`` writes them again.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from orchestrator.spec.experiment import ClaimFile, ExperimentFile, ToleranceFile
from orchestrator.spec.link import LinkFile, PathFile

DIRECTORY = Path(__file__).parents[2] / "docs" / "schema"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def experiment_schema() -> dict[str, Any]:
    """Of an experiment file. The names that exist, and their parameters, are not in it."""
    return _schema(ExperimentFile, ToleranceFile, PathFile, ClaimFile)


def link_schema() -> dict[str, Any]:
    """Of a link condition's file."""
    return _schema(LinkFile, PathFile)


def _schema(model: type[BaseModel], *inner: type[BaseModel]) -> dict[str, Any]:
    schema = {"$schema": _DIALECT, **model.model_json_schema()}
    for part in (model, *inner):
        properties = schema["properties"] if part is model else schema["$defs"][part.__name__]["properties"]
        defaults = part.model_construct().model_dump(mode="json")  # as a file would say it: "0 %", not 0.0
        for name, entry in properties.items():
            entry.pop("title", None)
            if name in defaults:
                entry["default"] = defaults[name]
    return schema


def schema_files() -> dict[str, str]:
    """File name → text."""
    schemas = {"experiment.schema.json": experiment_schema(), "link.schema.json": link_schema()}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def write_schemas(directory: Path = DIRECTORY) -> None:
    """Write `schema_files` to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_schemas()
