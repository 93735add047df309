"""Names of the sites that can be visited (han2015 table 1)."""

from typing import Literal, get_args

Slug = Literal[
    "news-1",
    "univ",
    "ad",
    "news-2",
    "tech",
    "video",
    "football",
    "shopn-1",
    "radio",
    "wiki",
    "search",
    "ent",
    "image",
    "sport",
    "social",
    "movie",
    "weather",
    "re",
    "airline",
    "shopn-2",
    "gov",
    "travel",
    "dict",
    "finance",
    "market",
]
SLUGS: tuple[Slug, ...] = get_args(Slug)
