"""Start a browser, and control it through its websocket. Drivers and the emulated device use these modules."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]
"""A JSON object that a browser sends."""
Event: TypeAlias = Json
"""A DevTools event: ``{"method": …, "params": …}``."""
