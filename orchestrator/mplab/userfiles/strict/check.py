"""Check the kind of a user's file, and validate its content.

Each problem is reported in one line: file, line, key, value, allowed values.
"""

import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mplab.base.errors import InputError
from mplab.base.suggest import describe, did_you_mean, unknown
from mplab.format.names import MAPPING, TEXT
from mplab.userfiles.strict.yaml import Document, KeyPath, Problem

Model = TypeVar("Model", bound=BaseModel)

_MOST_LINES = 50
_FORMAT_KEYS = frozenset({"mplab", "mplab_campaign", "mplab_paper"})


def tag_of(model: type[BaseModel]) -> str:
    """Return the tag of a model in a discriminated union, ``‹NAME›``; this form lets messages leave tags out."""
    return f"‹{model.__name__}›"


def _untagged(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    return tuple(part for part in loc if not (isinstance(part, str) and part.startswith("‹")))


class Checker:
    """Collects the problems of one document, so that a user sees all of them at once."""

    def __init__(self, document: Document) -> None:
        """Start with the problems found while reading the document."""
        self.document = document
        self._problems: set[Problem] = set(document.problems)

    def add(self, path: KeyPath, text: str) -> None:
        """Add a problem; `path` is the key path of the wrong value in the document, `text` is the message."""
        self._problems.add(self.document.problem(path, text))

    def model(
        self, model: type[Model], value: object, path: KeyPath = (), *, also: tuple[str, ...] = ()
    ) -> Model | None:
        """Validate `value`, which is at `path`, as `model`. If it is wrong, add its problems and return None.

        Keys in `also` are read elsewhere: they are accepted here, and messages list them as allowed.
        """
        if not isinstance(value, Mapping):
            allowed = ", ".join(sorted([*_keys(model), *also]))
            self.add(path, f"found {describe(value)}, a mapping is needed; keys: {allowed}")
            return None
        known = {key: item for key, item in value.items() if key not in also}
        try:
            # Strict JSON mode: lists become tuples, but text never becomes a number, and a number never a truth value.
            return model.model_validate_json(json.dumps(known), strict=True)
        except ValidationError as error:
            self._note(model, path, also, error)
            return None

    def _note(self, model: type[BaseModel], base: KeyPath, also: tuple[str, ...], error: ValidationError) -> None:
        values: dict[KeyPath, list[str]] = {}
        for details in error.errors(include_url=False):
            loc = tuple(part for part in details["loc"] if part not in {TEXT, MAPPING})
            keys = _untagged(loc)
            kind, value, path = details["type"], details["input"], (*base, *keys)
            if kind == "missing":
                add = f": write '{keys[-1]}: 1'" if keys[-1] in _FORMAT_KEYS else ""
                self.add(path[:-1], f"key '{keys[-1]}' is missing{add}")
            elif kind == "extra_forbidden":
                allowed = [*_keys(_model_at(model, loc[:-1])), *(also if len(keys) == 1 else ())]
                problem = unknown("key", str(keys[-1]), allowed)
                self._problems.add(self.document.problem(path, problem, path[:-1]))
            elif kind == "too_short" and len(value) >= details["ctx"]["min_length"]:
                continue  # the list is too short only because its wrong items are left out, and these are reported
            else:
                while len(path) > len(base) and not self.document.holds(path):
                    path = path[:-1]  # pydantic adds the name of a union's branch like a key
                values.setdefault(path, []).append(_explain(model, details, loc))
        for path, texts in values.items():
            self.add(path, "; or ".join(dict.fromkeys(texts)))

    def lines(self) -> list[str]:
        """Return one line for each problem, sorted by line number; problems of other files come last."""
        ordered = sorted(self._problems, key=lambda problem: (problem.file != self.document.file, problem))
        return [problem.render() for problem in ordered]

    def raise_problems(self) -> None:
        """Raise InputError with one line for each problem, if there are any."""
        raise_lines(self.lines())


def raise_lines(lines: list[str]) -> None:
    """Raise InputError with `lines` as its message, shortened to the first 50; do nothing if there are none."""
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} more"]
    if lines:
        raise InputError("\n".join(lines))


def _explain(model: type[BaseModel], details: ErrorDetails, loc: tuple[int | str, ...]) -> str:
    """Return mplab's text for a validation error of pydantic; `loc` is the path of the wrong value in `model`."""
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if kind in {"value_error", "assertion_error"}:
        return str(context["error"])
    if kind in {"literal_error", "enum"}:
        quoted = re.findall(r"'([^']*)'|([^\s',]+)", str(context["expected"]))
        names = [inner or bare for inner, bare in quoted if inner or bare != "or"]
        hint = did_you_mean(value, names) if isinstance(value, str) else ""
        return f"found {describe(value)}.{hint} Allowed: {', '.join(names)}"
    if kind in _COMPARED:
        return f"found {describe(value)}, {_bounds(_field_at(model, loc), kind, context)}"
    if kind in {"too_short", "string_too_short", "too_long", "string_too_long"}:
        bound = f"at least {context['min_length']}" if "min_length" in context else f"at most {context['max_length']}"
        return f"found {len(value)}: {bound} needed" if value else f"empty: {bound} needed"
    needed = _NEEDED.get(kind)
    problem = f", {needed} is needed" if needed else f": {details['msg'][0].lower()}{details['msg'][1:]}"
    return f"found {describe(value)}{problem}"


_COMPARED = {
    "greater_than_equal": "at least",
    "less_than_equal": "at most",
    "greater_than": "more than",
    "less_than": "less than",
}
_NEEDED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
}


def _bounds(field: FieldInfo | None, kind: str, context: Mapping[str, Any]) -> str:
    limits: dict[str, object] = {}
    for item in field.metadata if field else ():
        limits |= {name: getattr(item, name) for name in ("ge", "le") if hasattr(item, name)}
    if len(limits) == 2:
        return f"allowed: {limits['ge']}…{limits['le']}"
    return f"must be {_COMPARED[kind]} {next(iter(context.values())):g}"


def _keys(model: type[BaseModel] | None) -> list[str]:
    """Return the keys that a mapping in a file may have if `model` validates it; empty: there is no model."""
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _field_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> FieldInfo | None:
    owner = _model_at(model, loc[:-1]) if loc else None
    if owner is None:
        return None
    return next((field for name, field in owner.model_fields.items() if (field.alias or name) == loc[-1]), None)


def _model_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel] | None:
    """Return the model that validates the value at path `loc` of `model`; None: no model does."""
    current: list[type[BaseModel]] = [model]
    for part in loc:
        below = [
            inner
            for owner in current
            for name, field in owner.model_fields.items()
            if (field.alias or name) == part
            for inner in models_in(field.annotation)
        ]
        if below:
            current = below
        elif isinstance(part, str):  # the branch of a union, by its name or its tag
            current = [owner for owner in current if part in {owner.__name__, tag_of(owner)}] or current
    return current[0] if current else None


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the pydantic models that occur in a field's annotation."""
    origin = get_origin(annotation)
    if isinstance(annotation, type) and origin is None and issubclass(annotation, BaseModel):
        yield annotation
    elif origin in {Annotated, Union, types.UnionType, tuple, list, dict, set, frozenset}:
        for inner in get_args(annotation):
            yield from models_in(inner)


Kind = Literal["experiment", "campaign", "lab", "link", "paper", "phone"]

_KEYS: Mapping[Kind, frozenset[str]] = {
    "campaign": frozenset({"mplab_campaign", "experiments"}),
    "experiment": frozenset({"transports", "scenarios", "links"}),
    "lab": frozenset({"routers", "servers", "phones"}),
    "link": frozenset({"wifi", "lte"}),
    "paper": frozenset({"mplab_paper", "rows"}),
    "phone": frozenset({"android", "product"}),
}
"""Keys that only one kind of file has."""
_NAMES: Mapping[Kind, str] = {
    "campaign": "a campaign file",
    "experiment": "an experiment file",
    "lab": "a lab file",
    "link": "a link condition",
    "paper": "a paper of the catalogue",
    "phone": "a model of a phone",
}
_VERBS: Mapping[Kind, str] = {
    "campaign": "mplab campaign {file}",
    "experiment": "mplab run {file}",
    "lab": "mplab doctor --lab {file}",
    "link": "mplab links lint {file}",
    "paper": "mplab papers list",
    "phone": "mplab lab device --model {file}",
}


def check_kind(document: Document, wanted: Kind) -> None:
    """Check that a document is of the kind `wanted`, by the keys that only one kind of file has.

    A document without any such key is accepted.

    Raises:
        InputError: the document is of another kind; the message names the verb for that kind.
    """
    if not isinstance(document.data, Mapping) or document.data.keys() & _KEYS[wanted]:
        return
    if problem := other_kind(document, _NAMES[wanted]):
        raise InputError(problem)


def other_kind(document: Document, wanted: str) -> str:
    """Return a message that names the kind of a document and the verb for it; "": the kind cannot be recognised.

    Args:
        document: the document.
        wanted: what is needed instead, for the message: ``a run directory``.
    """
    data = document.data if isinstance(document.data, Mapping) else {}
    for kind, keys in _KEYS.items():
        if data.keys() & keys:
            verb = _VERBS[kind].format(file=document.file)
            return f"{document.file}:1: this is {_NAMES[kind]}, not {wanted}. Use it with '{verb}'"
    return ""
