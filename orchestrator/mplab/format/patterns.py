"""Pydantic annotations for words of a given form."""

import re

from pydantic import BeforeValidator, WithJsonSchema

from mplab.base.suggest import show


def text_like(pattern: re.Pattern[str], kind: str, needed: str) -> BeforeValidator:
    """Return a validator that accepts text that fully matches `pattern`.

    Other values raise ValueError: ``<kind> 'found': <needed>``.
    """

    def parse(found: object) -> str:
        if isinstance(found, str) and pattern.fullmatch(found):
            return found
        raise ValueError(f"{kind} {show(found)}: {needed}")

    return BeforeValidator(parse)


def pattern_schema(pattern: re.Pattern[str]) -> WithJsonSchema:
    """Return the JSON Schema of text that fully matches `pattern`."""
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern.pattern}$"})
