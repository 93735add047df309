"""Hook of properdocs.yml: the site has the Markdown pages of the whole repository, with links as in a checkout.

`properdocs build` calls the functions whose names start with ``on_``. Pages outside of `docs/` are part of the site, so
that every link between two pages works in a checkout, on a code host and in the site.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files
from properdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
INDEX = "docs/index.md"
FOLDERS = ("docs", "experiments", "mpflex", "phone-emulator", "proxy-docker", "router-configs", "ui-scenarios")
"""Folders whose Markdown files are pages, at every depth; pages of the root are always part of the site."""
_BLOCK = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)\s]+)\)")
_INSIDE_ITEM = re.compile(r"(?<=\n\n) {1,3}(?=\S)")
_CODE = re.compile(r"`[^`\n]+`")
_ELSEWHERE = re.compile(r"[a-z]+:")


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of the manual, sorted."""
    inner = (page for folder in FOLDERS for page in (root / folder).rglob("*.md"))
    return sorted(page for page in (*root.glob("*.md"), *inner) if "testdata" not in page.parts)


def links(text: str) -> Iterator[str]:
    """Yield the targets of the relative links of a page."""
    for _, _, target in _LINK.findall(_BLOCK.sub("", text)):
        if not _ELSEWHERE.match(target):
            yield target


def slug(title: str, separator: str = "-") -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", separator)


def headings(text: str) -> list[str]:
    """Return the anchors of a page's headings, without formatting, in their order."""
    counts: dict[str, int] = {}
    found = []
    for title in re.findall(r"^#+ (.+)$", _BLOCK.sub("", text), re.MULTILINE):
        base = slug(_LINK.sub(r"\2", title).replace("`", ""))
        counts[base] = count = counts.get(base, -1) + 1
        found.append(f"{base}-{count}" if count else base)
    return found


def on_config(config: ProperDocsConfig) -> None:
    """Make anchors as GitHub does."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug


def on_files(files: Files, config: ProperDocsConfig) -> Files:
    """Replace the files of `docs/` by the pages of the repository and the files that they link to."""
    found = pages()
    targets = {(page.parent / link.partition("#")[0]).resolve() for page in found for link in links(page.read_text())}
    linked = {path for path in targets if path.is_file() and path.suffix != ".md" and path.is_relative_to(ROOT)}
    made = Files([file for file in files if file.src_dir != config.docs_dir])  # of the theme and of the search
    for path in (*found, *sorted(linked)):
        name = path.relative_to(ROOT).as_posix()
        file = File.generated(config, name, abs_src_path=str(path))
        if name == INDEX:
            file.dest_uri, file.url = "index.html", "./"
        elif name == "README.md":
            file.dest_uri, file.url = "readme/index.html", "readme/"
        made.append(file)
    return made


def on_page_markdown(text: str, page: Page, **_: object) -> str:
    """Return the page as Python-Markdown needs it.

    Folders become plain text instead of links, because a site has no page for a folder. A ``|`` in code in a table is
    not escaped, as it must be for GitHub. What belongs to an item of a list is indented by four columns, and code in
    it by eight.
    """
    folder = (ROOT / page.file.src_uri).parent
    blocks: dict[str, str] = {}

    def keep(block: re.Match[str]) -> str:
        lines = [line.removeprefix(block[1]) for line in block[0].splitlines()]
        code = "\n".join(f"        {line}".rstrip() for line in lines[1:-1])
        blocks[key := f"\0{len(blocks)}\0"] = f"\n{code}\n" if block[1] else block[0]
        return key

    def unlinked(link: re.Match[str]) -> str:
        is_folder = not _ELSEWHERE.match(link[3]) and (folder / link[3]).is_dir()
        return str(link[2] if is_folder else link[0])

    def unescaped(code: re.Match[str]) -> str:
        return code[0].replace("\\|", "|")

    kept = _INSIDE_ITEM.sub("    ", _BLOCK.sub(keep, text))
    return _restored(_CODE.sub(unescaped, _LINK.sub(unlinked, kept)), blocks)


def _restored(text: str, blocks: Mapping[str, str]) -> str:
    return re.sub("\0[0-9]+\0", lambda key: blocks[key[0]], text)
