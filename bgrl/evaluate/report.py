"""Reports: one HTML file that needs nothing else, and the same figures as JSON beside it."""

import base64
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bgrl.errors import BgrlError, CorruptFile, SchemaMismatch
from bgrl.evaluate.errors import ALL, BLUNDER, PR
from bgrl.evaluate.stats import error_text, plus_minus
from bgrl.files import atomic_write_bytes, atomic_write_json, read_json, read_object
from bgrl.formats import svg_board
from bgrl.game import BACKGAMMON, Position, legal_plays
from bgrl.players import EquityPlayer
from bgrl.players.net import NetPlayer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "bgrl.report 1"

# Positions of different kinds: a name, the checkers of the player on roll and of the opponent by
# their own slots (25 the bar, the rest borne off), and the dice to play.
_START = {24: 2, 13: 5, 8: 3, 6: 5}
EXAMPLES = (
    ("opening", _START, _START, (3, 1)),
    ("opening", _START, _START, (4, 3)),
    (
        "blitz",
        {24: 2, 13: 3, 8: 3, 6: 3, 5: 2, 4: 2},
        {25: 1, 24: 1, 13: 5, 8: 3, 6: 5},
        (6, 4),
    ),
    (
        "holding game",
        {20: 2, 13: 4, 8: 3, 6: 4, 4: 2},
        {13: 3, 8: 3, 7: 2, 6: 5, 4: 2},
        (6, 5),
    ),
    (
        "prime against prime",
        {24: 2, 9: 2, 8: 2, 7: 2, 6: 3, 5: 2, 4: 2},
        {24: 2, 9: 2, 8: 2, 7: 2, 6: 3, 5: 2, 4: 2},
        (6, 1),
    ),
    (
        "back game",
        {24: 2, 22: 3, 13: 3, 8: 3, 6: 3, 3: 1},
        {13: 2, 8: 3, 7: 3, 6: 3, 5: 2, 4: 2},
        (5, 2),
    ),
    ("race", {10: 2, 8: 3, 7: 1, 6: 4, 5: 3, 4: 2}, {9: 2, 8: 2, 7: 2, 6: 4, 5: 3, 3: 2}, (4, 3)),
    (
        "bear-off against the bar",
        {6: 2, 5: 3, 4: 3, 3: 2, 2: 2},
        {25: 1, 6: 5, 5: 4, 4: 5},
        (6, 1),
    ),
)
PLAYS_SHOWN = 4

_COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8d6a9f", "#b98b20", "#4a4e69")

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fbfaf7;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; border-bottom: 1px solid #ddd; }
p.about { color: #666; margin-top: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; white-space: nowrap; }
th { font-weight: 600; border-bottom: 1px solid #999; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
tbody tr:nth-child(even) { background: #f1efe8; }
small { color: #666; }
img { max-width: 100%; height: auto; }
.boards { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); }
figure { margin: 0; }
figcaption { font-size: .9rem; margin: .3rem 0; }
"""


@dataclass
class Report:
    """A report that grows by sections; `write` makes the files.

    title: the page's. about: a line under it.
    """

    title: str
    about: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    _parts: list[str] = field(default_factory=list)

    def add_matches(self, matches: Sequence[Mapping[str, Any]], heading: str = "Matches") -> None:
        """A table of match results, each as `MatchResult.to_json`.

        One with a "reason" instead of a "ppg" was not played; "a" and "b" name its players.
        """
        rows = []
        for match in matches:
            names = [f"{match['a']} against {match['b']}"]
            if match.get("ppg") is None:
                reason = match.get("reason") or match.get("ended") or "no games"
                rows.append(
                    [*names, f'<td colspan="6" style="text-align:left">{escape(reason)}</td>']
                )
                continue
            rates = match["rates"]
            rows.append(
                [
                    *names,
                    _plus_minus(match["ppg"], match["standard_error"]),
                    f"{match['games']:,}",
                    f"{rates['win']:.1%}",
                    f"{rates['win_gammon']:.1%} : {rates['lose_gammon']:.1%}",
                    f"{rates['win_backgammon']:.1%} : {rates['lose_backgammon']:.1%}",
                    escape(_note(match)),
                ]
            )
        head = ["players", "ppg", "games", "wins", "gammons", "backgammons", ""]
        self._add("matches", heading, _table(head, rows), list(matches))
        self._parts.append(
            "<p><small>ppg: points a game, cubeless, ± one standard error. Positive: the "
            "first-named player wins. Gammons and backgammons won : lost, each share of all games; "
            "gammons include backgammons.</small></p>"
        )

    def add_ladder(self, ladder: Mapping[str, Any], heading: str = "Ladder") -> None:
        """Ratings with a plot, and the cross table of points a game: `ratings.ladder_json`."""
        table = {(entry["a"], entry["b"]): entry for entry in ladder["cross_table"]}
        rows = []
        for player, value, error in zip(
            ladder["players"], ladder["ratings"], _rating_errors(ladder), strict=True
        ):
            cells = [f"{value:.0f} {error_text(error, 0)}"]
            if player == ladder["anchor"]:
                cells = [f"{value:.0f} (anchor)"]
            for other in ladder["players"]:
                entry = table.get((player, other))
                cells.append(
                    "·"
                    if entry is None or entry["ppg"] is None
                    else _plus_minus(entry["ppg"], entry["standard_error"])
                )
            rows.append([escape(player), *cells])
        head = ["player", f"rating ({ladder['scale']:.0f})", *ladder["players"]]
        body = _image(_ladder_figure(ladder), "ratings") + _table(head, rows)
        self._add("ladder", heading, body, dict(ladder))

    def add_learning_curve(self, metrics: Iterable[Mapping[str, Any]]) -> None:
        """Strength over self-play games and over time, and the loss, of a run's metrics lines.

        The lines of a generation have the keys "generation", "kept", "games" and "ppg_OPPONENT";
        those of the trainer "step" and "loss".
        """
        lines = list(metrics)
        generations = learning_curve(lines)
        losses = [
            {key: line[key] for key in ("step", "loss", "val_loss") if line.get(key) is not None}
            for line in lines
            if line.get("loss") is not None
        ]
        body = ""
        if any(generation["ppg"] for generation in generations):
            body += _image(_curve_figure(generations), "strength over games and time")
        if losses:
            body += _image(_loss_figure(losses), "loss over training steps")
        if body:
            data = {"generations": generations, "losses": losses}
            self._add("learning_curve", "Learning curve", body, data)

    def add_positions(
        self,
        player: EquityPlayer,
        positions: Sequence[tuple[str, Position, tuple[int, int]]],
        heading: str = "How it plays",
    ) -> None:
        """Board pictures, each with the player's best plays and their equities."""
        figures, data = [], []
        for name, position, dice in positions:
            ranked = player.rank_plays(position, dice)
            best = ranked[0].play if ranked else None
            rows = [
                [
                    escape(str(play.play)),
                    f"{play.score:+.3f}",
                    f"{play.score - ranked[0].score:+.3f}",
                ]
                for play in ranked[:PLAYS_SHOWN]
            ]
            picture = svg_board(position, play=best, dice=dice)
            caption = f"{escape(name)}: {dice[0]}-{dice[1]} <small>{position.gnubg_id}</small>"
            figures.append(
                f"<figure>{_svg_image(picture, name)}<figcaption>{caption}</figcaption>"
                f"{_table(['play', 'equity', ''], rows) if rows else 'no play'}</figure>"
            )
            data.append(
                {
                    "name": name,
                    "position": position.gnubg_id,
                    "dice": list(dice),
                    "plays": [
                        {
                            "play": str(play.play),
                            "equity": play.equity,
                            "probabilities": None
                            if play.probabilities is None
                            else play.probabilities.tolist(),
                        }
                        for play in ranked
                    ],
                }
            )
        self._add("positions", heading, f'<div class="boards">{"".join(figures)}</div>', data)

    def add_errors(self, errors: Sequence[Mapping[str, Any]], heading: str = "Errors") -> None:
        """Errors by kind of position, calibration, and the first player's worst decisions.

        errors: of each player, as `errors.errors_json`.
        """
        body = _error_table(errors, "rates", "difference") + (
            "<p><small>Mean error a decision in mEq, ± one standard error, by kind of position; "
            "below, what the others lose more than the first on the same decisions. "
            f"PR: {PR} × the mean error. Blunders lose {BLUNDER} or more. Equity error: mean "
            "difference from the reference's equity before the roll, in mEq.</small></p>"
        )
        if errors[0]["rollout_rates"]:
            body += "<h3>By rollouts</h3>" + _error_table(
                errors, "rollout_rates", "rollout_difference"
            )
            body += (
                f"<p><small>On {errors[0]['rollout_rates'][ALL]['decisions']} hard decisions, "
                "whose serious plays were rolled out. The errors ± include the rollouts' own "
                "noise, which the column of that name tells apart. The best of several rollouts "
                "is partly the luckiest, so all errors are a little too large alike; the "
                "differences are not.</small></p>"
            )
        if any(entry["calibration"]["win"] for entry in errors):
            body += _image(_calibration_figure(errors), "calibration")
        self._add("errors", heading, body, list(errors))
        figures = [_mistake(mistake) for mistake in errors[0]["worst"]]
        if figures:
            self._parts.append(
                f"<h2>{escape(errors[0]['player'])}’s worst decisions</h2>\n"
                f'<div class="boards">{"".join(figures)}</div>'
            )

    def write(self, folder: str | Path) -> Path:
        """Write ``report.html`` and ``report.json`` into `folder`; returns the HTML file."""
        folder = Path(folder)
        page = (
            "<!doctype html>\n"
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_STYLE}</style></head>\n<body><h1>{escape(self.title)}</h1>\n"
            f'<p class="about">{escape(self.about)}</p>\n{"".join(self._parts)}</body></html>\n'
        )
        atomic_write_json(
            folder / "report.json",
            {"format": FORMAT, "title": self.title, "about": self.about, **self.data},
        )
        atomic_write_bytes(folder / "report.html", page.encode())
        return folder / "report.html"

    def _add(self, key: str, heading: str, body: str, data: Any) -> None:
        self._parts.append(f"<h2>{escape(heading)}</h2>\n{body}\n")
        self.data[key] = data


def run_report(
    run: str | Path,
    metrics: Iterable[Mapping[str, Any]],
    folder: str | Path | None = None,
    ladder: str | Path | None = None,
    errors: str | Path | None = None,
) -> Path:
    """The report of a run folder of `bgrl loop`; returns the HTML file, RUN/report/report.html.

    metrics: the lines of the run's metrics.jsonl. folder: where to write instead. ladder, errors:
    folders of reports by `bgrl ladder` and `bgrl errors`, whose sections are taken over; by
    default RUN/ladder and RUN/errors, where they are there.

    Shows what there is so far: the last net's matches once ``result.json`` is there, the learning
    curve, ratings, errors, and how the net in ``net/`` plays some positions. Raises BgrlError if
    there is no such folder, and CorruptFile for a damaged file in it.
    """
    run = Path(run)
    if not run.is_dir():
        raise BgrlError(f"{run} is no run folder")
    lines = list(metrics)
    report = Report(f"bgrl run {run.resolve().name}")
    if (run / "net" / "net.json").exists():
        player = NetPlayer.load(run / "net")
        net = player.net
        made = read_json(run / "net" / "net.json").get("made", {})
        report.about = f"Net {net.hash}, {net.variant.name}" + "".join(
            f", {made[key]:,} {key}" for key in ("games",) if isinstance(made.get(key), int)
        )
        report.data["net"] = {"hash": net.hash, "variant": net.variant.name, "made": made}
    else:
        player = None
    result = run / "result.json"
    if result.exists():
        try:
            report.add_matches(
                [
                    row["match"] or {"a": run.name, "b": row["opponent"], "reason": row["reason"]}
                    for row in read_object(result)["rows"]
                ]
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptFile(f"{result}: not the result of a loop: {error!r}") from error
    report.add_learning_curve(lines)
    for section, add, source in (
        ("ladder", report.add_ladder, ladder),
        ("errors", report.add_errors, errors),
    ):
        found = Path(run / section if source is None else source) / "report.json"
        if source is None and not found.exists():
            continue
        about, data = _section(found, section)
        try:
            add(data, f"{section.capitalize()}: {about}" if about else section.capitalize())
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CorruptFile(
                f"{found}: its section {section!r} is malformed: {error!r}"
            ) from error
    if player is not None and player.variant == BACKGAMMON:
        report.add_positions(player, examples())
    return report.write(run / "report" if folder is None else folder)


def _section(path: Path, section: str) -> tuple[str, Any]:
    """The line under the title, and a section's data, of a report's JSON file."""
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SchemaMismatch(f"{path}: its format is not {FORMAT!r}")
    if section not in data:
        raise BgrlError(f"{path} has no section {section!r}")
    return str(data.get("about", "")), data[section]


def examples() -> list[tuple[str, Position, tuple[int, int]]]:
    """Positions of different kinds with dice, to see how a player plays."""
    return [
        (name, Position.from_points(mine, theirs), dice) for name, mine, theirs, dice in EXAMPLES
    ]


def learning_curve(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry a generation: games and seconds of work so far, kept, and {opponent: [ppg, error]}.

    The seconds are those of self-play, training and evaluation: a pause between two sittings of a
    resumed run doesn't count.
    """
    curve = []
    games, seconds = 0, 0.0
    by_generation = {line["generation"]: line for line in lines if "kept" in line}
    for generation, line in sorted(by_generation.items()):
        games += line.get("games", 0)
        seconds += sum(
            line.get(f"{stage}_seconds") or 0.0 for stage in ("selfplay", "train", "evaluate")
        )
        ppg = {
            key.removeprefix("ppg_"): [value, line.get("ppg_error_" + key.removeprefix("ppg_"))]
            for key, value in line.items()
            if key.startswith("ppg_") and not key.startswith("ppg_error_") and value is not None
        }
        curve.append(
            {
                "generation": generation,
                "games": games,
                "seconds": round(seconds, 3),
                "kept": bool(line["kept"]),
                "ppg": ppg,
            }
        )
    return curve


def _curve_figure(generations: list[dict[str, Any]]) -> "Figure":
    figure, axes = _axes(2, "")
    opponents = sorted({opponent for entry in generations for opponent in entry["ppg"]})
    for axis, key, unit, label in (
        (axes[0], "games", 1.0, "self-play games"),
        (axes[1], "seconds", 60.0, "minutes of work"),
    ):
        for opponent, colour in zip(opponents, _cycle(), strict=False):
            entries = [entry for entry in generations if opponent in entry["ppg"]]
            x = [entry[key] / unit for entry in entries]
            y = [entry["ppg"][opponent][0] for entry in entries]
            error = [entry["ppg"][opponent][1] or 0.0 for entry in entries]
            axis.errorbar(x, y, error, color=colour, lw=1.4, elinewidth=0.8, label=opponent)
            for kept, face in ((True, colour), (False, "white")):
                points = [i for i, entry in enumerate(entries) if entry["kept"] == kept]
                axis.plot(
                    [x[i] for i in points], [y[i] for i in points],
                    "o", ms=4, color=colour, mfc=face,
                )  # fmt: skip
        axis.axhline(0, color="#888", lw=0.8)
        axis.set_xlabel(label)
    axes[0].set_ylabel("ppg against the opponent")
    axes[0].legend(frameon=False, title="hollow: net not kept")
    return figure


def _loss_figure(losses: list[dict[str, Any]]) -> "Figure":
    figure, (axis,) = _axes(1, "loss")
    for key, label, colour in (
        ("loss", "training", _COLOURS[0]),
        ("val_loss", "held out", _COLOURS[1]),
    ):
        entries = [entry for entry in losses if key in entry]
        if entries:
            axis.plot(
                [entry["step"] for entry in entries],
                [entry[key] for entry in entries],
                color=colour, lw=1.2, label=label,
            )  # fmt: skip
    axis.set_xlabel("training step")
    axis.legend(frameon=False)
    return figure


def _rating_errors(ladder: Mapping[str, Any]) -> list[float]:
    """Standard errors of the ratings against the anchor's; nan for those that are unknown."""
    return np.sqrt(np.diag(np.array(ladder["covariance"], dtype=float))).tolist()


def _ladder_figure(ladder: Mapping[str, Any]) -> "Figure":
    players = ladder["players"]
    figure, (axis,) = _axes(1, "", height=0.9 + 0.32 * len(players))
    y = range(len(players), 0, -1)
    errors = [1.96 * error for error in _rating_errors(ladder)]
    axis.errorbar(ladder["ratings"], list(y), xerr=errors, fmt="o", color=_COLOURS[0], capsize=3)
    axis.set_yticks(list(y), players)
    axis.set_ylim(0.4, len(players) + 0.6)
    axis.set_xlabel("rating, with 95% intervals against the anchor")
    return figure


def _calibration_figure(errors: Sequence[Mapping[str, Any]]) -> "Figure":
    figure, axes = _axes(2, "reference's probability")
    for axis, output in zip(axes, ("win", "win_gammon"), strict=True):
        axis.plot([0, 1], [0, 1], color="#888", lw=0.8)
        for entry, colour in zip(errors, _cycle(), strict=False):
            points = entry["calibration"][output]
            if not points:  # a player without probabilities
                continue
            axis.plot(
                [mine for mine, _, _ in points], [truth for _, truth, _ in points],
                "o-", ms=4, lw=1.2, color=colour, label=entry["player"],
            )  # fmt: skip
        axis.set_xlabel(f"player's probability: {output.replace('_', ' a ')}")
    axes[0].legend(frameon=False)
    return figure


def _mistake(mistake: Mapping[str, Any]) -> str:
    """A board picture with the play made as arrows, and what was better."""
    position = Position.from_gnubg_id(mistake["position"])
    die1, die2 = mistake["dice"]
    plays = {play.position.gnubg_id: play for play in legal_plays(position, (die1, die2))}
    made, best = plays[mistake["after"]], plays[mistake["best_after"]]
    picture = svg_board(position, play=made, dice=(die1, die2))
    kind = mistake["kind"]
    return (
        f"<figure>{_svg_image(picture, kind)}<figcaption>{escape(kind)} "
        f"{die1}-{die2} <small>{position.gnubg_id}</small><br>"
        f"{escape(str(made))} loses {mistake['loss']:.3f} to {escape(str(best))}"
        "</figcaption></figure>"
    )


def _axes(columns: int, ylabel: str, height: float = 3.2) -> tuple["Figure", Any]:
    # The object interface: pyplot would keep global state and choose a display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, height), layout="constrained")
    axes = figure.subplots(1, columns, sharey=True, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#e5e2da", lw=0.6)
        axis.set_axisbelow(True)
    axes[0].set_ylabel(ylabel)
    return figure, axes


def _cycle() -> list[str]:
    return list(_COLOURS) * 4


def _image(figure: "Figure", name: str) -> str:
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "bgrl"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return f'<p class="wide">{_svg_image(buffer.getvalue(), name)}</p>'


def _svg_image(svg: str, name: str) -> str:
    # As an image of its own, so that no id or style in it meets another's.
    encoded = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{encoded}">'


def _error_table(errors: Sequence[Mapping[str, Any]], rates: str, difference: str) -> str:
    """Each player's errors by kind, and by how much they exceed the first player's."""
    kinds = [kind for kind in errors[0]["rates"] if kind in errors[0][rates]]
    rollouts = all("rollout_error" in entry[rates][ALL] for entry in errors)

    def last(entry: Mapping[str, Any]) -> str:
        if rollouts:
            return f"± {1000 * entry[rates][ALL]['rollout_error']:.1f}"
        return "·" if entry["equity_error"] is None else _milli(*entry["equity_error"])

    rows = [
        [
            escape(entry["player"]),
            f"{entry[rates][ALL]['pr']:.2f}",
            f"{entry[rates][ALL]['blunders']:.1%}",
            *(
                _milli(entry[rates][kind]["mean_error"], entry[rates][kind]["standard_error"])
                for kind in kinds
            ),
            last(entry),
        ]
        for entry in errors
    ]
    first = escape(errors[0]["player"])
    rows += [
        [
            f"{escape(entry['player'])} less {first}",
            "",
            "",
            *(_milli(mean, error, "+.1f") for mean, error in map(entry[difference].get, kinds)),
            "",
        ]
        for entry in errors[1:]
    ]
    end = "rollouts’ noise" if rollouts else "equity error"
    return _table(["player", "PR", "blunders", *kinds, end], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table; the cells are HTML already, the head is text."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(c if c.startswith("<td") else f"<td>{c}</td>" for c in row) + "</tr>"
        for row in rows
    )
    head_row = f"<thead><tr>{heads}</tr></thead>"
    return f'<div class="wide"><table>{head_row}<tbody>{body}</tbody></table></div>'


def _plus_minus(value: float, error: float | None) -> str:
    if error is None:
        error = math.nan
    return plus_minus(value, error, digits=4 if 0 < error < 0.001 else 3)


def _milli(value: float, error: float | None, form: str = ".1f") -> str:
    """Points as thousandths."""
    return f"{1000 * value:{form}}" + ("" if error is None else f" ± {1000 * error:.1f}")


def _note(match: Mapping[str, Any]) -> str:
    notes = []
    if match.get("luck_by"):
        notes.append("luck-adjusted")
    if match.get("failures"):
        notes.append(f"{len(match['failures'])} games set aside")
    if match.get("ended", "complete") != "complete":
        notes.append(match["ended"])
    return "; ".join(notes)
