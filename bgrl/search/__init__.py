"""Looking ahead: n-ply search, exact backups, bear-off databases."""

from bgrl.search.backup import backup_targets
from bgrl.search.bearoff import Bearoff
from bgrl.search.nply import ALL, BEST, FULL, NORMAL, TINY, Filters, MoveFilter, Searcher

__all__ = [
    "ALL",
    "BEST",
    "FULL",
    "NORMAL",
    "TINY",
    "Bearoff",
    "Filters",
    "MoveFilter",
    "Searcher",
    "backup_targets",
]
