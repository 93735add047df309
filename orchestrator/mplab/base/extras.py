"""Extras of the distribution: which one installs a module that is missing."""

from importlib.util import find_spec

from mplab.base.errors import LabNotReadyError

MODULES = {
    "adbutils": "phones",
    "h11": "phones",
    "lxml": "phones",
    "paramiko": "phones",
    "uiautomator2": "phones",
    "duckdb": "report",
    "docker": "docker",
    "dask": "cluster",
    "distributed": "cluster",
    "fsspec": "cluster",
    "prometheus_client": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
}
"""Module → extra of ``pyproject.toml`` that installs it. Modules that every installation has are not listed."""
EXTRAS = ("", *sorted(set(MODULES.values())))
"""Extras with modules that mplab imports; "": the dependencies without an extra."""


def advice(error: BaseException) -> str:
    """Return the message for an import that failed because an extra is not installed; "": another error.

    The message is ``adbutils is not installed. Run: pip install 'mplab[phones]'``.
    """
    if not isinstance(error, ModuleNotFoundError):
        return ""
    module = (error.name or "").partition(".")[0]
    return _advice(module) if module in MODULES else ""


def require(extra: str) -> None:
    """Raise LabNotReadyError if a module of an extra is not installed."""
    for module, of_extra in MODULES.items():
        if of_extra == extra and find_spec(module) is None:
            raise LabNotReadyError(_advice(module))


def _advice(module: str) -> str:
    return f"{module} is not installed. Run: pip install 'mplab[{MODULES[module]}]'"
