"""Configurations of programs: templates that are filled in, and files that nobody else may read."""

from pathlib import Path

from mplab.base.deferred import deferred


def render(folder: Path, template: str, **values: object) -> str:
    """The text of `template` in `folder`. Lines that hold a block alone leave no line behind.

    Raises:
        jinja2.UndefinedError: the template uses a value that was not given.
    """
    with deferred("slow to import"):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - configurations, not HTML
    )
    return environment.get_template(template).render(**values)


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone may read; missing folders are made, for him alone, too."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
