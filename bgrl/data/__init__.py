"""Training positions on disk: Parquet shards, generations, the replay window and its batches."""

from bgrl.data.generations import (
    Generation,
    Skipped,
    is_complete,
    open_generation,
    publish_generation,
    shard_path,
)
from bgrl.data.schema import Positions, ShardMeta
from bgrl.data.shards import Shard, ShardWriter, open_shard, read_positions
from bgrl.data.stream import Batch, Prefetcher, WindowStream
from bgrl.data.window import Window, held_out

__all__ = [
    "Batch",
    "Generation",
    "Positions",
    "Prefetcher",
    "Shard",
    "ShardMeta",
    "ShardWriter",
    "Skipped",
    "Window",
    "WindowStream",
    "held_out",
    "is_complete",
    "open_generation",
    "open_shard",
    "publish_generation",
    "read_positions",
    "shard_path",
]
