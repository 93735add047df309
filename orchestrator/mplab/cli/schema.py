"""Write the JSON Schemas in docs/schema/: of users' files, for editors; of records, for programs that read runs.

``python -m mplab.cli.schema`` writes all of them.
"""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from mplab.base.places import INSTALLED, ROOT, cache_folder
from mplab.base.plugins import PHONES
from mplab.format.campaignevents import CampaignEvent
from mplab.format.campaignfile import BreakerFile, CampaignFile, CompareFile, ExperimentEntry
from mplab.format.cell import CellRecord, Scores
from mplab.format.events import Event, kinds_of
from mplab.format.manifest import Manifest
from mplab.format.record import Record
from mplab.format.runevents import RunEvent
from mplab.userfiles.experiments.claims import ClaimFile, CorrelationFile, TrendFile
from mplab.userfiles.experiments.experiment import (
    CellsFile,
    ExperimentFile,
    HooksFile,
    IntervalFile,
    StopFile,
    ToleranceFile,
)
from mplab.userfiles.labs.lab import AttachmentFile, LabFile, PhoneFile
from mplab.userfiles.labs.phone import phone_kind
from mplab.userfiles.links.changes import ChangeFile
from mplab.userfiles.links.link import InlineLinkFile, LinkFile
from mplab.userfiles.links.pathfile import BurstLossFile, DirectionFile, PathFile, QueueFile
from mplab.userfiles.papers.paper import FormFile, FormsFile, PaperFile, RowFile
from mplab.userfiles.strict.check import models_in
from mplab.userfiles.strict.inherit import PATHS

DIRECTORY = cache_folder("schema") if INSTALLED else ROOT / "docs" / "schema"
"""Folder of the schemas that `write_schemas` writes: some depend on the installed drivers."""
EXPERIMENT, CAMPAIGN = "experiment.schema.json", "campaign.schema.json"
LINK, LAB, PAPER = "link.schema.json", "lab.schema.json", "paper.schema.json"
MANIFEST, CELL, SCORES = "manifest.schema.json", "cell.schema.json", "scores.schema.json"
RUN_EVENTS, CAMPAIGN_EVENTS = "run-events.schema.json", "campaign-events.schema.json"
"""Files in `DIRECTORY`. `LAB` depends on the installed drivers, so it is not under version control."""

_OF_PATHS = (PathFile, BurstLossFile, QueueFile)
Schema = dict[str, Any]
"""A JSON Schema as parsed JSON."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def experiment_schema() -> Schema:
    """Return the schema of an experiment file.

    It does not list the names and parameters of scenarios, transports and links.
    """
    claims = (ClaimFile, TrendFile, CorrelationFile)
    schema = _schema(
        ExperimentFile, ToleranceFile, HooksFile, StopFile, IntervalFile, *claims, InlineLinkFile, *_OF_PATHS
    )
    _paths_partly(schema)
    _complete_unless_extended(schema["$defs"][InlineLinkFile.__name__])
    needed = [key for key in schema["required"] if key not in _NOT_INHERITED]
    schema["required"] = list(_NOT_INHERITED)
    schema["if"], schema["then"] = {"not": {"required": ["extends"]}}, {"required": needed}
    _no_other_names(schema)
    _with_variables(schema)
    return schema


def link_schema() -> Schema:
    """Return the schema of a file with a link condition."""
    schema = _schema(LinkFile, *_OF_PATHS)
    _paths_partly(schema)
    _complete_unless_extended(schema)
    return schema


def lab_schema() -> Schema:
    """Return the schema of a lab file. It does not check that a phone's router is among the routers."""
    fields = (*LabFile.model_fields.items(), *PhoneFile.model_fields.items())
    entries = [model for name, field in fields if name in _OF_SHAPERS for model in models_in(field.annotation)]
    parts = [part for entry in entries for part in _parts_of(entry)]
    schema = _schema(LabFile, PhoneFile, AttachmentFile, *dict.fromkeys([*entries, *parts]))
    _all_phones(schema)
    _no_other_names(schema)
    return schema


_OF_SHAPERS = ("routers", "servers", "root_shell")
"""Keys of a lab file whose values are defined by the drivers of shapers."""


def _parts_of(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return the models of a model's fields."""
    return [part for field in model.model_fields.values() for part in models_in(field.annotation)]


def _all_phones(schema: Schema) -> None:
    """Add the keys of every kind of phone to the schema of a phone.

    The schema therefore accepts a key also with a driver that does not have it.
    """
    properties = schema["$defs"][PhoneFile.__name__]["properties"]
    for name in PHONES:
        settings = phone_kind(name).settings
        of_kind = _schema(settings, *_parts_of(settings))
        schema["$defs"] = of_kind.get("$defs", {}) | schema["$defs"]
        properties |= {key: entry for key, entry in of_kind["properties"].items() if key not in properties}
    titles = (f"'{name}' is {phone_kind(name).title}" for name in PHONES)
    properties["driver"]["anyOf"][0]["enum"] = list(PHONES)
    properties["driver"]["description"] = f"How runs use it: {'; '.join(titles)}. Without: shaped by hand."
    schema["$defs"] = dict(sorted(schema["$defs"].items()))


def campaign_schema() -> Schema:
    """Return the schema of a campaign file."""
    return _schema(CampaignFile, ExperimentEntry, BreakerFile, CompareFile)


def paper_schema() -> Schema:
    """Return the schema of a file of the catalogue of papers."""
    return _schema(PaperFile, FormsFile, FormFile, RowFile, CellsFile, StopFile, IntervalFile)


def _no_other_names(schema: Schema) -> None:
    for entry in schema["properties"].values():
        if "patternProperties" in entry:
            entry["additionalProperties"] = False


def _schema(model: type[BaseModel], *inner: type[BaseModel]) -> Schema:
    schema = {"$schema": _DIALECT, **model.model_json_schema()}
    for part in (model, *inner):
        properties = schema["properties"] if part is model else schema["$defs"][part.__name__]["properties"]
        defaults = _defaults(part)
        for name, entry in properties.items():
            entry.pop("title", None)
            if name in defaults:
                entry["default"] = defaults[name]
    return schema


def _defaults(model: type[BaseModel]) -> dict[str, object]:
    """Return field → default value for a model, in the form of a file: "0 %", not 0.0."""
    defaults: dict[str, object] = {}
    for name, field in model.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if default is not None:
            form: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
            defaults[name] = TypeAdapter(form).dump_python(default, mode="json")
    return defaults


def _paths_partly(schema: Schema) -> None:
    """Change the schemas of paths so that a file may give only some keys of a path.

    Changes and directions lose their titles and defaults. A path requires no keys: see `_complete_unless_extended`.
    """
    for part in (ChangeFile, DirectionFile):
        for entry in schema["$defs"][part.__name__]["properties"].values():
            for word in ("title", "default"):  # an omitted key keeps its earlier value: it has no default
                entry.pop(word, None)
    path = schema["$defs"][PathFile.__name__]
    del path["required"], path["properties"]["rtt"]["default"]  # see _complete_unless_extended


def _complete_unless_extended(link: Schema) -> None:
    """Make the schema of a link condition without ``extends`` and ``sweep`` require both paths with both directions.

    A condition with one of these keys gets missing keys from another file or from the sweep.
    """
    link["required"] = [key for key in link["required"] if key not in PATHS]
    link["properties"]["sweep"] = {**link["properties"]["sweep"]["anyOf"][0], **_described(link["properties"]["sweep"])}
    both_directions = {"required": ["down", "up"]}
    link["if"] = {"not": {"anyOf": [{"required": ["extends"]}, {"required": ["sweep"]}]}}
    link["then"] = {"required": list(PATHS), "properties": dict.fromkeys(PATHS, both_directions)}


_NOT_INHERITED = ("mplab", "name")
_FIXED = ("mplab", "extends", "vars")
"""Keys that are read before variables are expanded, so that their values contain none."""
_VARIABLE = "Variable"
_ABOUT = ("title", "description", "default", "examples")


def _with_variables(schema: Schema) -> None:
    """Make the schema accept ``${NAME}`` in place of every value that is not free text."""
    for owner in (schema, *schema["$defs"].values()):
        entries = owner.get("properties", {})
        for name, entry in entries.items():
            entries[name] = entry if name in _FIXED else _or_variable(entry)
    uses = {"type": "string", "pattern": r"\$\{[a-z][a-z0-9_]{0,39}\}", "description": "With a variable of 'vars'."}
    schema["$defs"][_VARIABLE] = uses


def _or_variable(entry: Schema) -> Schema:
    values = {word: value for word, value in entry.items() if word not in _ABOUT}
    if not values or "const" in values or (values.get("type") == "string" and not {"pattern", "enum"} & values.keys()):
        return entry
    options = values["anyOf"] if list(values) == ["anyOf"] else [values]
    about = {word: entry[word] for word in _ABOUT if word in entry}
    return {"anyOf": [*options, {"$ref": f"#/$defs/{_VARIABLE}"}], **about}


def _described(entry: Schema) -> Schema:
    return {"description": entry["description"]}


def record_schema(model: type[Record]) -> Schema:
    """Return the schema of a file that holds one record, in the form that this version writes."""
    return _untitled({"$schema": _DIALECT, **model.model_json_schema(mode="serialization")})


def events_schema(base: type[Event], title: str) -> Schema:
    """Return the schema of one line of an event log. Events of unknown kinds are valid."""
    kinds = kinds_of(base)
    _, schema = models_json_schema([(kind, "serialization") for kind in (base, *kinds.values())])
    defs = _untitled(schema)["$defs"]
    for name, kind in kinds.items():
        properties = defs[kind.__name__]["properties"]
        properties["event"] = {"const": name}
        del properties["t"]
    any_event = defs.pop(base.__name__)
    for entry in any_event["properties"].values():
        entry.pop("default")
    rules = [
        {"if": {"properties": {"event": {"const": name}}}, "then": {"$ref": f"#/$defs/{kind.__name__}"}}
        for name, kind in kinds.items()
    ]
    return {"$schema": _DIALECT, **any_event, "title": title, "required": ["t", "event"], "allOf": rules, "$defs": defs}


def _untitled(schema: Schema) -> Schema:
    """Remove the titles of properties, which only repeat the properties' names; return the schema."""
    for part in (schema, *schema.get("$defs", {}).values()):
        for entry in part.get("properties", {}).values():
            entry.pop("title", None)
    return schema


def schema_files() -> dict[str, str]:
    """Return file name → content of all schema files."""
    schemas = {
        EXPERIMENT: experiment_schema(),
        LINK: link_schema(),
        LAB: lab_schema(),
        CAMPAIGN: campaign_schema(),
        PAPER: paper_schema(),
        MANIFEST: record_schema(Manifest),
        CELL: record_schema(CellRecord),
        SCORES: record_schema(Scores),
        RUN_EVENTS: events_schema(RunEvent, "an event of a run"),
        CAMPAIGN_EVENTS: events_schema(CampaignEvent, "an event of a campaign"),
    }
    identified = {name: _identified(name, schema) for name, schema in schemas.items()}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in identified.items()}


def _identified(name: str, schema: Schema) -> Schema:
    """Return a schema with its ``$id``, a name that leads nowhere: the schemas are in no place of the web."""
    return {"$schema": schema["$schema"], "$id": f"https://mplab.invalid/{name}", **schema}


def write_schemas(directory: Path = DIRECTORY) -> None:
    """Write `schema_files` to `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_schemas()
