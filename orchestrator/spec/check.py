"""From a document to models: every problem in it as one line with file, line, place, what was found, and what is allowed."""

import json
import re
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from orchestrator.errors import InputError
from orchestrator.spec.suggest import did_you_mean, show, unknown
from orchestrator.spec.yaml import Document, KeyPath, Problem, path_text

Model = TypeVar("Model", bound=BaseModel)


class Checker:
    """Collects what is wrong in one document, so that a user sees all of it at once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._problems: set[Problem] = set(document.problems)

    def add(self, path: KeyPath, text: str) -> None:
        """Note that what stands at `path` is wrong."""
        self._problems.add(Problem(self.document.line(path), path_text(path), text))

    def model(
        self, model: type[Model], value: object, path: KeyPath = (), *, ignored: frozenset[str] = frozenset()
    ) -> Model | None:
        """`value`, which stands at `path`, as `model`; None when it is wrong, which is then noted.

        Keys in `ignored` are left out before validation and not named among the allowed ones.
        """
        if not isinstance(value, Mapping):
            allowed = ", ".join(sorted(_keys(model)))
            self.add(path, f"found {_found(value)}, a mapping is needed; keys: {allowed}")
            return None
        given = {key: item for key, item in value.items() if key not in ignored}
        try:
            # Strict JSON mode: lists become tuples, but no text becomes a number and no number a truth.
            return model.model_validate_json(json.dumps(given), strict=True)
        except ValidationError as error:
            for place, texts in _by_place(self.document, model, path, error).items():
                self.add(place, "; or ".join(dict.fromkeys(texts)))
            return None

    def lines(self) -> list[str]:
        """The problems, first line first."""
        return [problem.render(self.document.file) for problem in sorted(self._problems)]

    def raise_problems(self) -> None:
        """Raises InputError with all problems, one a line, when there are any."""
        raise_lines(self.lines())


def raise_lines(lines: list[str]) -> None:
    """Raises InputError with `lines` when there are any."""
    if lines:
        raise InputError("\n".join(lines))


def _by_place(
    document: Document, model: type[BaseModel], base: KeyPath, error: ValidationError
) -> dict[KeyPath, list[str]]:
    """Messages by the place in the file that they are about."""
    places: dict[KeyPath, list[str]] = {}
    for details in error.errors(include_url=False):
        loc = details["loc"]
        path = (*base, *loc)
        if details["type"] == "missing":
            path = path[:-1]
        while len(path) > len(base) and not document.holds(path):
            path = path[:-1]  # pydantic names the branch of a union as if it were a key
        places.setdefault(path, []).append(_explain(model, details))
    return places


def _explain(model: type[BaseModel], details: ErrorDetails) -> str:  # noqa: PLR0911 - one line a kind of error
    kind, context, found = details["type"], details.get("ctx", {}), details["input"]
    key = str(details["loc"][-1]) if details["loc"] else ""
    field = _field_at(model, details["loc"])
    match kind:
        case "extra_forbidden":
            return unknown("key", key, _keys(_model_at(model, details["loc"][:-1])))
        case "missing":
            return f"key '{key}' is missing"
        case "value_error" | "assertion_error":
            return str(context["error"])
        case "literal_error" | "enum":
            allowed = re.findall(r"'([^']*)'|([^\s',]+)", str(context["expected"]))
            names = [quoted or bare for quoted, bare in allowed if quoted or bare != "or"]
            hint = did_you_mean(found, names) if isinstance(found, str) else ""
            return f"found {_found(found)}.{hint} Allowed: {', '.join(names)}"
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            return f"found {_found(found)}, {_bounds(field, kind, context)}"
        case "too_short" | "string_too_short":
            return (
                f"empty: at least {context['min_length']} needed" if not found else _at_least(found, context)
            )
        case "too_long" | "string_too_long":
            return f"found {len(found)}, at most {context['max_length']} allowed"
    needed = _NEEDED.get(kind)
    if needed:
        return f"found {_found(found)}, {needed} is needed"
    return f"found {_found(found)}: {details['msg'][0].lower()}{details['msg'][1:]}"


def _at_least(found: Any, context: Mapping[str, Any]) -> str:  # noqa: ANN401 - text or a list
    return f"found {len(found)}, at least {context['min_length']} needed"


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


def _found(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case str():
            return (
                f"{show(value)} (text)"
                if re.fullmatch(r"[-+]?[0-9.]+|true|false|null", value)
                else show(value)
            )
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return json.dumps(value)


def _bounds(field: FieldInfo | None, kind: str, context: Mapping[str, Any]) -> str:
    limits = {
        name: getattr(item, name)
        for item in (field.metadata if field else [])
        for name in ("ge", "le")
        if hasattr(item, name)
    }
    if len(limits) == 2:
        return f"allowed: {limits['ge']}…{limits['le']}"
    word = {
        "greater_than_equal": "at least",
        "less_than_equal": "at most",
        "greater_than": "more than",
        "less_than": "less than",
    }
    return f"must be {word[kind]} {next(iter(context.values()))}"


def _keys(model: type[BaseModel] | None) -> list[str]:
    """The keys that a file may use for `model`."""
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _field_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> FieldInfo | None:
    owner = _model_at(model, loc[:-1]) if loc else None
    if owner is None:
        return None
    return next(
        (field for name, field in owner.model_fields.items() if (field.alias or name) == loc[-1]), None
    )


def _model_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model that validates what stands at `loc`, or None when that is not a model."""
    current: list[type[BaseModel]] = [model]
    for part in loc:
        below = [
            inner
            for owner in current
            for name, field in owner.model_fields.items()
            if (field.alias or name) == part
            for inner in _models_in(field.annotation)
        ]
        if below:
            current = below
        elif isinstance(part, str) and part in {owner.__name__ for owner in current}:
            current = [owner for owner in current if owner.__name__ == part]
    return current[0] if current else None


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    origin = get_origin(annotation)
    if isinstance(annotation, type) and origin is None and issubclass(annotation, BaseModel):
        yield annotation
    elif origin in {Annotated, Union, types.UnionType, tuple, list, dict, set, frozenset}:
        for inner in get_args(annotation):
            yield from _models_in(inner)
