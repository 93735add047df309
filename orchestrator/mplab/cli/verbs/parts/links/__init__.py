"""List the link conditions, explain and draw one, or check files."""

from pathlib import Path
from typing import Annotated, TypedDict

import typer

from mplab.base.errors import InputError
from mplab.base.files import explained
from mplab.cli.command import VerbApp
from mplab.cli.options import JsonOption, complete_links, is_file, links_of, one_link
from mplab.cli.output import err, out, output_file, print_json, table
from mplab.cli.verbs.parts.links.drawing import TITLES, text_drawing, write_figure
from mplab.format.abilities import refusals
from mplab.format.direction import WAYS, Direction, Queue
from mplab.format.link import LinkCondition
from mplab.format.path import PathCondition
from mplab.format.units import format_duration_ms, format_duration_s
from mplab.lab.catalog import LINKS_DIR
from mplab.userfiles.labs.machines import emulator
from mplab.userfiles.links.link import file_of, list_links, load_link, load_links, read_link_file

app = VerbApp(invoke_without_command=True)

_MOST_CHANGES = 40
_FULL_PACKET_BYTES = 1500


@app.callback()
def list_all(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the link conditions; one line for each file."""
    if context.invoked_subcommand is not None:
        return
    files = [load_links(name, LINKS_DIR) for name in list_links(LINKS_DIR)]
    if as_json:
        print_json([_described(link) for links in files for link in links])
        return
    rows = table("link", "title", "WiFi: down/up, RTT", "LTE: down/up, RTT", "changes")
    for links in files:
        first = links[0]
        name, title = first.name, first.title
        if len(links) > 1:
            name, title = f"{name} … {links[-1].name} ({len(links)})", _shared_title(first)
        rows.add_row(name, title, *(_words(links, path) for path in ("wifi", "lte")), _changes(first))
    out.print(rows)


def _shared_title(member: LinkCondition) -> str:
    """Return the title of a sweep: that of its condition `member` without the last part in brackets."""
    return member.title.rpartition(" (")[0]


def _words(links: tuple[LinkCondition, ...], path: str) -> str:
    first, last = (_short(getattr(links[index], path)) for index in (0, -1))
    return first if first == last else f"{first} … {last}"


def _short(path: PathCondition) -> str:
    """Return a path as text without words: ``7.04/2.02 Mbit/s, 50 ms``."""
    down, up = path.down.text("rate"), path.up.text("rate")
    number, _, unit = down.partition(" ")
    shared = unit and up.endswith(f" {unit}")
    rates = f"{number}/{up}" if shared else down if down == up else f"{down} / {up}"
    return str(path).replace(f"{down} down, {up} up, RTT ", f"{rates}, ")


def _changes(link: LinkCondition) -> str:
    """Return number, first and last time of a link's changes as text: ``3, 15 s to 60 s``; "": there are none."""
    if not link.changes:
        return ""
    first, last = (format_duration_s(link.changes[index].at_s) for index in (0, -1))
    return f"{len(link.changes)}, {first} to {last}"


def _described(link: LinkCondition, file: Path | None = None) -> dict[str, object]:
    return {**link.to_json(), "extends": link.extends or None, "file": str(file or file_of(link.name, LINKS_DIR))}


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="Name of the link condition, or the path of a file with one.",
            show_default=False,
            autocompletion=complete_links,
        ),
    ],
    *,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the link condition into this SVG file.", show_default=False, callback=output_file
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain one link condition: its source, both directions of both paths, its changes over time."""
    links = links_of(name)
    if plot is not None:
        _plot(one_link(name), plot)
    if as_json:
        described = [_described(link, Path(name) if is_file(name) else None) for link in links]
        print_json(described[0] if len(described) == 1 else described)
        return
    if len(links) > 1:
        _print_sweep(name, links)
        return
    (link,) = links
    _print_head(link, link.name, link.title)
    _print_directions(link)
    if link.changes:
        _print_changes(link)
    _print_drawing(link)
    for problem in refusals(link, emulator().abilities):
        err.print(f"! {problem}", style="yellow", markup=False, soft_wrap=True)
    if plot is not None:
        out.print(f"\nDrawn: {plot}", markup=False, soft_wrap=True)


def _plot(link: LinkCondition, file: Path) -> None:
    if file.suffix != ".svg":
        raise InputError(f"--plot {file}: figures are SVG: name a file that ends in .svg")
    with explained(file):
        write_figure(link, file)


def _print_head(link: LinkCondition, name: str, title: str) -> None:
    out.print(f"{name}  {title}", style="bold", markup=False)
    out.print(f"  from: {link.source or 'no source given'}", markup=False)
    above = link
    while above.extends:
        above = load_link(above.extends, LINKS_DIR)
        out.print(f"  on top of {above.name} ({above.title}; {above.source or 'no source given'})", markup=False)
    out.print(f"  file: {file_of(link.name, LINKS_DIR)}", markup=False, soft_wrap=True)


def _print_sweep(name: str, links: tuple[LinkCondition, ...]) -> None:
    _print_head(links[0], name, _shared_title(links[0]))
    out.print()
    rows = table("condition", "WiFi", "LTE", "changes")
    for link in links:
        rows.add_row(link.name, str(link.wifi), str(link.lte), _changes(link))
    out.print(rows)


def _print_directions(link: LinkCondition) -> None:
    rows = table("path", "direction", "rate", "delay", "jitter", "loss", "reordered", "twice", "queue")
    for title, path in zip(TITLES.values(), (link.wifi, link.lte), strict=True):
        for direction in WAYS:
            rows.add_row(title if direction == "down" else "", direction, *_cells(path.way(direction)))
    out.print()
    out.print(rows)
    round_trips = " and ".join(
        f"{format_duration_ms(path.rtt_ms)} over {title}{_losses(path)}"
        for title, path in zip(TITLES.values(), (link.wifi, link.lte), strict=True)
    )
    out.print(f"\nRound trips of an idle path: {round_trips}.", markup=False)
    for title, path in zip(TITLES.values(), (link.wifi, link.lte), strict=True):
        if path.strips_multipath:
            out.print(f"A middlebox on {title} removes the options of Multipath TCP from handshakes.", markup=False)
    if link.core_rtt_ms:
        out.print(f"{format_duration_ms(link.core_rtt_ms)} more between the proxy and every server.", markup=False)


def _losses(path: PathCondition) -> str:
    return f" ({path.round_trip_loss_percent:.3g} % of them lost)" if path.round_trip_loss_percent else ""


def _cells(way: Direction) -> list[str]:
    texts = [way.text("rate"), way.text("delay")]
    if way.trace is not None:
        profile = way.trace.profile()
        texts[0] += f" ({profile.mean_kbps / 1000:.3g} Mbit/s over {profile.lasts_ms / 1000:g} s)"
    shown = (("jitter", way.jitter_ms), ("loss", way.loss), ("reorder", way.reorder_percent))
    texts += [way.text(key) if value else "" for key, value in (*shown, ("duplicate", way.duplicate_percent))]
    return [*texts, _queue_text(way)]


def _queue_text(way: Direction) -> str:
    """Return the queue of a direction as text, with the time that a full queue takes to drain."""
    rate = way.trace.profile().mean_kbps if way.trace else way.rate_kbps
    if rate is None:
        return "none: nothing waits"
    return f"{way.queue} (up to {format_duration_ms(round(_waiting_ms(way.queue, rate)))})"


def _waiting_ms(queue: Queue, rate_kbps: float) -> float:
    size = queue.length if queue.unit == "bytes" else queue.length * _FULL_PACKET_BYTES
    return size * 8 / rate_kbps


def _print_changes(link: LinkCondition) -> None:
    rows = table("at", "path", "what happens")
    for moment in link.changes[:_MOST_CHANGES]:
        rows.add_row(format_duration_s(moment.at_s), TITLES[moment.path], moment.text)
    out.print()
    out.print(rows)
    if len(link.changes) > _MOST_CHANGES:
        last = format_duration_s(link.changes[-1].at_s)
        out.print(f"… and {len(link.changes) - _MOST_CHANGES} more, the last at {last} (--json has all)")


def _print_drawing(link: LinkCondition) -> None:
    drawn = text_drawing(link)
    if not drawn:
        return
    rows = table("", "over time", "")
    for label, cells, values in drawn:
        rows.add_row(label, cells, values)
    out.print()
    out.print(rows)


@app.command()
def lint(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Files with link conditions (YAML).", show_default=False)
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Check files of link conditions, and list all problems; exit code 2 if there are any."""
    results = [_linted(file) for file in files]
    if as_json:
        print_json({"files": results})
    else:
        for result in results:
            for problem in result["problems"]:
                err.print(problem, markup=False, soft_wrap=True)
            for note in result["notes"]:
                err.print(f"! {note}", style="yellow", markup=False, soft_wrap=True)
            if not result["problems"]:
                out.print(f"{result['file']}: ok ({', '.join(result['conditions'])})", markup=False, soft_wrap=True)
    raise typer.Exit(InputError.exit_code if any(result["problems"] for result in results) else 0)


class _Linted(TypedDict):
    """The ``--json`` output for one checked file; notes are parts of conditions that the virtual lab cannot make."""

    file: str
    conditions: list[str]
    problems: list[str]
    notes: list[str]


def _linted(file: Path) -> _Linted:
    """Check one file of link conditions, and return its conditions, problems and notes."""
    try:
        links = read_link_file(file, LINKS_DIR)
    except InputError as error:
        return {"file": str(file), "conditions": [], "problems": str(error).splitlines(), "notes": []}
    notes = [f"{file}: {problem}" for link in links for problem in refusals(link, emulator().abilities)]
    return {
        "file": str(file),
        "conditions": [link.name for link in links],
        "problems": [],
        "notes": list(dict.fromkeys(notes)),
    }
