"""Positions and match states as text and pictures: gnubg IDs, XGID, FIBS, .mat, boards, SVG."""

from bgrl.formats.fibs import format_fibs, parse_fibs
from bgrl.formats.gnubg_id import (
    format_gnubg_id,
    format_match_id,
    parse_gnubg_id,
    parse_match_id,
)
from bgrl.formats.mat import MatAction, MatGame, MatMatch, parse_mat, read_mat
from bgrl.formats.match_state import MatchState
from bgrl.formats.svg import svg_board
from bgrl.formats.xgid import format_xgid, parse_xgid, split_xgid
from bgrl.game.text import text_board

__all__ = [
    "MatAction",
    "MatGame",
    "MatMatch",
    "MatchState",
    "format_fibs",
    "format_gnubg_id",
    "format_match_id",
    "format_xgid",
    "parse_fibs",
    "parse_gnubg_id",
    "parse_mat",
    "parse_match_id",
    "parse_xgid",
    "read_mat",
    "split_xgid",
    "svg_board",
    "text_board",
]
