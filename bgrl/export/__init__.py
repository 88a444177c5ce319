"""Nets for apps: ONNX, flat files, golden vectors, levels, and proof that they compute the same."""

from bgrl.export.export import Export, Loss, export_levels, export_net, record_losses
from bgrl.export.onnx import OnnxNet, describe_onnx, read_onnx, write_onnx
from bgrl.export.parity import Parity, compare

__all__ = [
    "Export",
    "Loss",
    "OnnxNet",
    "Parity",
    "compare",
    "describe_onnx",
    "export_levels",
    "export_net",
    "read_onnx",
    "record_losses",
    "write_onnx",
]
