"""Configurations of programs: render templates, and write files that only their owner can read."""

from pathlib import Path

from mplab.base.deferred import deferred


def render(folder: Path, template: str, **values: object) -> str:
    """Render the Jinja2 template `template` in `folder`. A line that holds only a block tag leaves no empty line.

    Raises:
        jinja2.TemplateNotFound: `folder` has no such template.
        jinja2.UndefinedError: the template uses a value that is not in `values`.
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
    """Write a file that only its owner can read (mode 600). Missing folders are created with mode 700."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)  # of a file that was there before
    path.write_text(text)
