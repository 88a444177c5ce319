"""Board -> net inputs. Each encoder has a name, a version and a hash."""

from bgrl.encoding.encoder import Encoder
from bgrl.encoding.registry import ENCODERS, get_encoder

__all__ = ["ENCODERS", "Encoder", "get_encoder"]
