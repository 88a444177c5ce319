"""Self-play: a net plays itself and writes what it learns from."""

from bgrl.selfplay.workers import generate

__all__ = ["generate"]
