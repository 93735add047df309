"""The generated pages of the manual are up to date."""

import pytest

from mplab.base.plugins import REGISTRIES
from mplab.cli.reference import DIRECTORY, pages

FOREIGN = [name for registry in REGISTRIES for name, plugin in registry.plugins.items() if plugin.foreign]
pytestmark = pytest.mark.skipif(bool(FOREIGN), reason=f"plug-ins of other distributions are installed: {FOREIGN}")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize("name", sorted(path.name for path in DIRECTORY.glob("*.md")))
def test_a_committed_page_is_up_to_date(name: str, made: dict[str, str]) -> None:
    assert (DIRECTORY / name).read_text(encoding="utf-8") == made[name], "run 'python -m mplab.cli.reference'"


def test_every_key_and_every_option_has_a_meaning(made: dict[str, str]) -> None:
    """Exempt are swept keys, which mean the same as the keys of a path."""
    for name, page in made.items():
        for section in page.split("\n## "):
            if not section.startswith("`sweep"):
                rows = [line for line in section.splitlines() if line.startswith("| `")]
                assert [row for row in rows if not row.split(" | ")[-1].strip(" |")] == [], name


def test_every_page_is_committed(made: dict[str, str]) -> None:
    assert {path.name for path in DIRECTORY.glob("*.md")} == set(made)
