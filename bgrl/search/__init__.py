"""Looking ahead: exact backups, n-ply search, bear-off databases."""

from bgrl.search.backup import backup_targets

__all__ = ["backup_targets"]
