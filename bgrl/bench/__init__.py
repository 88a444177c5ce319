"""Benchmarks: how fast and how small everything is, beside other engines in the same run.

What is measured runs in processes of its own, one at a time but where two workers are the point,
with one thread unless it is the trainer. Repetitions of ours and of theirs take turns, so that a
machine that slows down slows both; figures are medians, and a ratio is the median of the ratios of
neighbouring repetitions.
"""

from bgrl.bench.run import PARTS, Settings, run_bench

__all__ = ["PARTS", "Settings", "run_bench"]
