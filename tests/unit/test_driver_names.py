"""The name of a driver occurs only in the driver's own package: everything else uses the registries."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from mplab.base.places import ROOT
from mplab.base.plugins import PHONES, PROXIES, SHAPERS, TRANSPORTS, Plugin

SOURCES = ("orchestrator", "analysis", "ui-scenarios", "proxy-docker", "phone-emulator")
WORDS = {
    "adb": "the program",
    "emulated": "an adjective",
    "linkem": "the program, which also probes links",
    "mpflex": "the program: agent, proxy and logger",
    "mptcp": "the protocol, which kernels and captures have",
    "process": "a program that runs",
    "root-shell": "a key of a phone in a lab file",
    "virtual": "an adjective",
}
"""Names of drivers that are also field terms: as the name of a variable or function, they have that meaning."""
EXCEPTIONS = {
    ("adb", "orchestrator/mplab/base/programs.py"): "the program",
    ("adb", "orchestrator/mplab/cli/verbs/experiments/init.py"): "a lab file to begin with shows what there is",
    ("adb", "orchestrator/mplab/cli/verbs/lab/phone.py"): "the verbs of phones that adb sees",
    ("adb", "phone-emulator/mplab/device/"): "a way to root, and adb's own protocol",
    ("adb", "orchestrator/mplab/drivers/phone/"): "the program, and a way to root",
    ("adb", "orchestrator/mplab/drivers/ui/appium.py"): "the program",
    ("adb", "orchestrator/mplab/lab/phones/emulated/lab.py"): "a folder of the program's server",
    ("docker", "orchestrator/mplab/base/extras.py"): "a Python package, and an extra",
    ("docker", "orchestrator/mplab/cli/verbs/experiments/init.py"): "a lab file to begin with shows what there is",
    ("docker", "orchestrator/mplab/lab/phones/adb/"): "an example of what a lab file needs, in messages",
    ("linkem", "orchestrator/mplab/base/programs.py"): "the program",
    ("linkem", "orchestrator/mplab/format/record.py"): "old records",
    ("linkem", "orchestrator/mplab/papers/collect.py"): "the program, whose version is recorded",
    ("linux", "orchestrator/mplab/drivers/ui/factory.py"): "the platform of a browser",
    ("mpflex", "analysis/mplab/analysis/figures/scored.py"): "a title of a table",
    ("mpflex", "orchestrator/mplab/base/"): "the program, and its listener of the same name",
    ("mpflex", "orchestrator/mplab/drivers/transport/"): "a transport of the agent, and the process in its log",
    ("mpflex", "orchestrator/mplab/format/record.py"): "old records",
    ("mpflex", "orchestrator/mplab/papers/collect.py"): "the program, whose version is recorded",
    ("mptcp", "analysis/"): "a level of the decoded tables",
    ("mptcp", "orchestrator/mplab/base/endpoints.py"): "a listener of the proxy",
    ("mptcp", "orchestrator/mplab/cli/verbs/lab/lab/device.py"): "the protocol in a phone's kernel",
    ("mptcp", "phone-emulator/mplab/device/"): "the protocol in a phone's kernel",
    ("mptcp", "orchestrator/mplab/drivers/phone/interface.py"): "a word of the program ip",
    ("mptcp", "orchestrator/mplab/lab/phones/virtual/lab.py"): "the protocol of the sockets of apps",
    ("mptcp", "orchestrator/mplab/drivers/proxy/process/servers.py"): "a listener of the proxy",
    ("mptcp", "ui-scenarios/mplab/scenarios/base/scoring/"): "a level of the decoded tables",
    ("mptcp", "orchestrator/mplab/drivers/transport/"): "a transport of the agent, and a level of the decoded tables",
    ("mptcp", "orchestrator/mplab/format/captured.py"): "a level of the decoded tables",
    ("openwrt", "orchestrator/mplab/cli/verbs/experiments/init.py"): "a lab file to begin with shows what there is",
    ("openwrt", "orchestrator/mplab/drivers/shaper/tc/"): "machines with OpenWrt: its packages, its guard's folder",
    ("openwrt", "orchestrator/mplab/drivers/shaper/virtual/"): "a virtual router is driven by the driver of OpenWrt",
    ("process", "orchestrator/mplab/drivers/transport/"): "a field of the agent's log",
    ("sptcp", "orchestrator/mplab/format/record.py"): "old records",
    ("sptcp-lte", "orchestrator/mplab/format/record.py"): "old records",
    ("virtual", "analysis/mplab/analysis/bundle/anonymise.py"): "a word that names nobody",
    ("virtual", "orchestrator/mplab/cli/verbs/experiments/init.py"): "a lab file to begin with shows what there is",
    ("virtual", "orchestrator/mplab/format/names.py"): "what experiment files call the lab without a lab file",
    ("virtual", "orchestrator/mplab/format/record.py"): "old records",
    ("virtual", "orchestrator/mplab/lab/phones/emulated/"): "an emulated phone is a node of the virtual lab",
}
"""(driver's name, file or folder outside of its package) → reason."""


@dataclass(frozen=True)
class Use:
    """A driver's name in a file outside of its package."""

    name: str
    file: str
    line: int
    identifier: bool


@cache
def drivers() -> dict[str, tuple[Plugin, ...]]:
    """Return the product's own drivers by name; of two kinds with one name, both."""
    by_name: dict[str, tuple[Plugin, ...]] = {}
    for registry in (TRANSPORTS, SHAPERS, PHONES, PROXIES):
        for name, plugin in registry.plugins.items():
            if not plugin.foreign:
                by_name[name] = (*by_name.get(name, ()), plugin)
    return by_name


def identifiers(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name


def named_by(node: ast.AST) -> Iterator[str]:
    """Yield the drivers that a node names: as text, in a message about ``driver:``, by an import, as an identifier."""
    match node:
        case ast.Constant(value=str(text)):
            yield from {text, *re.findall(r"driver: ([a-z][a-z-]*)", text)} & drivers().keys()
        case ast.ImportFrom(module=str(module)):
            for name, plugins in drivers().items():
                if any(f"{module}.".startswith(f"{plugin.module}.") for plugin in plugins):
                    yield name
        case _:
            yield from {word.lower().replace("_", "-") for word in identifiers(node)} & drivers().keys()


def docstrings(tree: ast.AST) -> set[int]:
    return {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }


def uses_in(path: Path) -> Iterator[Use]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = docstrings(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        for name in named_by(node):
            if not any(path.is_relative_to(plugin.folder()) for plugin in drivers()[name]):
                identifier = not isinstance(node, ast.Constant | ast.ImportFrom)
                yield Use(name, str(path.relative_to(ROOT)), getattr(node, "lineno", 0), identifier)


@pytest.fixture(scope="module")
def uses() -> list[Use]:
    files = [path for source in SOURCES for path in sorted((ROOT / source).rglob("*.py"))]
    return [use for path in files if not path.name.startswith("test_") for use in uses_in(path)]


def is_word(use: Use) -> bool:
    return use.identifier and use.name in WORDS


def excepted(use: Use) -> bool:
    return any(use.name == name and use.file.startswith(prefix) for name, prefix in EXCEPTIONS)


def test_a_driver_is_named_only_in_its_package(uses: list[Use]) -> None:
    assert [f"{use.file}:{use.line}: {use.name}" for use in uses if not (is_word(use) or excepted(use))] == []


def test_every_exception_is_needed(uses: list[Use]) -> None:
    others = [use for use in uses if not is_word(use)]
    needed = {key for key in EXCEPTIONS for use in others if use.name == key[0] and use.file.startswith(key[1])}
    assert sorted(EXCEPTIONS.keys() - needed) == []
    assert sorted(WORDS.keys() - {use.name for use in uses if use.identifier}) == []


@pytest.mark.parametrize(
    "text",
    [
        'KIND = "openwrt"',
        'raise ValueError("needs driver: openwrt")',
        "def openwrt() -> None: ...",
        "x.OPENWRT",
        "f(openwrt=1)",
        "from mplab.drivers.shaper.openwrt.driver import RouterFile",
    ],
)
def test_every_way_to_name_a_driver_is_found(text: str) -> None:
    assert "openwrt" in {name for node in ast.walk(ast.parse(text)) for name in named_by(node)}


def test_another_folder_and_a_docstring_name_none() -> None:
    tree = ast.parse('"""openwrt"""\nfrom mplab.drivers.shaper.openwrt_like import x\ny = "openwrt-like"')
    skipped = docstrings(tree)
    assert [name for node in ast.walk(tree) if id(node) not in skipped for name in named_by(node)] == []
