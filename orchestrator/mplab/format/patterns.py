"""Values of files that are one word of a certain form."""

import re

from pydantic import BeforeValidator, WithJsonSchema

from mplab.base.suggest import show


def text_like(pattern: re.Pattern[str], kind: str, needed: str) -> BeforeValidator:
    """Takes what `pattern` matches as a whole; what else is found is refused: ``<kind> 'found': <needed>``."""

    def parse(found: object) -> str:
        if isinstance(found, str) and pattern.fullmatch(found):
            return found
        raise ValueError(f"{kind} {show(found)}: {needed}")

    return BeforeValidator(parse)


def pattern_schema(pattern: re.Pattern[str]) -> WithJsonSchema:
    """The same for the JSON schema."""
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern.pattern}$"})
