"""The stages in order: the only code that knows which comes after which."""

from bgrl.pipeline.loop import Loop, LoopResult

__all__ = ["Loop", "LoopResult"]
