"""A benchmark's result as a table for the terminal and as a chart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bgrl.files import atomic_file

# A chart is of what is compared a second; the rest is in the table.
_RATES = ("/s",)
BUSY = 0.25  # load a core from which on a measurement can't be trusted


def print_tables(result: dict[str, Any]) -> None:
    """Print the figures with their goals, what they are about, and the profile if there is one."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    machine = result["machine"]
    console.print(
        f"{machine['cpu']}, {machine['cores']} cores; load {machine['load']} before the run",
        highlight=False,
    )
    if machine["load"] > BUSY * machine["cores"]:
        console.print("The machine was busy already: speeds are too low and ratios rough.")
    for net in result["nets"]:
        what = "" if net["trained"] else ", whose games are far longer than a trained one's"
        console.print(
            f"net {net['shape']} {net['hash']}, {net['encoder']}: {net['origin']}{what}",
            highlight=False,
        )
    table = Table("figure", "bgrl", "peer", "", "ratio", "goal", "met")
    for column in (1, 3, 4, 5):
        table.columns[column].justify = "right"
    notes = []
    for figure in result["figures"]:
        mark = ""
        if figure["note"] or figure["missing"]:
            notes.append("; ".join(filter(None, (figure["missing"], figure["note"]))))
            mark = f" [{len(notes)}]"
        table.add_row(*_row(figure, mark))
    console.print(table, highlight=False, markup=False)
    for number, note in enumerate(notes, 1):
        console.print(f"[{number}] {note}", highlight=False, markup=False)
    for title, headings, rows in _profiles(result["profile"]):
        table = Table(*headings, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row)
        console.print(table, highlight=False, markup=False)


def draw(result: dict[str, Any], path: Path) -> None:
    """Write a bar chart of all speeds, ours beside the peers', as `path` (.svg or .png).

    The axis is logarithmic; whiskers reach from the slowest to the fastest repetition. Draws
    nothing when nothing was compared.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for figure in result["figures"]:
        if figure["peer"] and figure["unit"].endswith(_RATES):
            groups.setdefault((figure["name"], figure["unit"]), []).append(figure)
    if not groups:
        return
    from matplotlib.figure import Figure as Chart

    bars: list[tuple[float, dict[str, Any], str, str]] = []
    ticks = []
    y = 0.0
    for (name, unit), figures in groups.items():
        ours = figures[0]["ours"]
        peers = [figure["peer"] for figure in figures]
        ticks.append((y + len(peers) / 2, f"{name}\n{unit}"))
        bars.append((y, ours, "C0", f"{ours['name']} {_number(ours['median'])}"))
        for figure in figures:
            y += 1
            peer, ratio = figure["peer"], figure["ratio"]["median"]
            text = f"{peer['name']} {_number(peer['median'])}  ({ours['name']} {ratio:.3g}×)"
            bars.append((y, peer, "C7", text))
        y += 2
    chart = Chart(figsize=(10, 0.8 + 0.36 * y), layout="constrained")
    axes = chart.subplots()
    for at, series, colour, text in bars:
        middle = series["median"]
        spread = [[middle - series["low"]], [series["high"] - middle]]
        axes.barh(at, middle, 0.85, color=colour, xerr=spread, error_kw={"lw": 0.8})
        axes.annotate(
            text, (series["high"], at), (4, 0), textcoords="offset points", va="center", size=8
        )
    lowest = min(series["low"] for _, series, _, _ in bars)
    highest = max(series["high"] for _, series, _, _ in bars)
    axes.set_xscale("log")
    axes.set_xlim(lowest / 3, highest * 300)
    axes.invert_yaxis()
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks], size=8)
    axes.spines[["top", "right"]].set_visible(False)
    machine = result["machine"]
    axes.set_title(f"{machine['cpu']}, {machine['cores']} cores", size=9, loc="left")
    with atomic_file(path) as temporary:
        chart.savefig(temporary, format=path.suffix[1:], dpi=150)


def _row(figure: dict[str, Any], mark: str) -> list[str]:
    ours, peer, ratio, goal = (figure[key] for key in ("ours", "peer", "ratio", "goal"))
    of_ratio = ""
    if ratio:
        of_ratio = f"{ratio['median']:.3g}×"
        if len(ratio["values"]) > 1:
            of_ratio += f" ({ratio['low']:.3g} to {ratio['high']:.3g})"
    wanted = ""
    if goal:
        unit = "×" if goal["of"] == "ratio" else f" {figure['unit']}"
        wanted = ("≤ " if goal["at"] == "most" else "≥ ") + f"{goal['limit']:,g}{unit}"
    missing = "not installed" if "pip install" in figure["missing"] else ""
    return [
        figure["name"] + mark,
        f"{_number(ours['median'])} {figure['unit']}" if ours else "",
        peer["name"] if peer else missing,
        _number(peer["median"]) if peer else "",
        of_ratio,
        wanted,
        {True: "yes", False: "NO", None: ""}[figure["met"]],
    ]


def _profiles(
    profile: dict[str, Any] | None,
) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """(title, headings, rows) of each table of a profile."""
    if profile is None:
        return
    for shape, phases in profile["kernels"].items():
        whole, plays = phases["whole"], phases["plays"]
        yield (
            f"choosing a play, {shape}, {plays:.1f} plays a roll",
            ["phase", "µs", "share"],
            [
                [name, f"{value:.2f}", f"{value / whole:.0%}"]
                for name, value in phases.items()
                if name != "plays"
            ],
        )
    for name in ("worker", "trainer"):
        yield (
            f"{name}: functions by their own time",
            ["function", "calls", "own s", "share", "with callees s"],
            [
                [
                    row["function"],
                    f"{row['calls']:,}",
                    f"{row['own_seconds']:.3f}",
                    f"{row['share']:.0%}",
                    f"{row['cumulative_seconds']:.3f}",
                ]
                for row in profile[name]
            ],
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
