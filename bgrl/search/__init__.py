"""Looking ahead: n-ply search and bear-off databases."""

from bgrl.search.bearoff import Bearoff
from bgrl.search.nply import ALL, BEST, FULL, NORMAL, TINY, Filters, MoveFilter, Pruner, Searcher

__all__ = [
    "ALL",
    "BEST",
    "FULL",
    "NORMAL",
    "TINY",
    "Bearoff",
    "Filters",
    "MoveFilter",
    "Pruner",
    "Searcher",
]
