"""The torch net, its numba twin for fast play, and checkpoints.

Torch is imported when :class:`Net` is first asked for, and not for playing.
"""

from typing import TYPE_CHECKING, Any

from bgrl.nets.fast import FastNet
from bgrl.nets.weights import Weights, read_description

if TYPE_CHECKING:
    from bgrl.nets.net import Net as Net
    from bgrl.nets.net import boards_tensor as boards_tensor
    from bgrl.nets.net import load_net as load_net
    from bgrl.nets.net import save_net as save_net

_NEED_TORCH = ("Net", "boards_tensor", "load_net", "save_net")

__all__ = ["FastNet", "Weights", "read_description", *_NEED_TORCH]


def __getattr__(name: str) -> Any:
    if name in _NEED_TORCH:
        from bgrl.nets import net

        return getattr(net, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
