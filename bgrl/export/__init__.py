"""Nets for apps: ONNX, golden vectors, and proof that they compute what bgrl computes."""

from bgrl.export.export import Export, export_net
from bgrl.export.onnx import OnnxNet, describe_onnx, read_onnx, write_onnx
from bgrl.export.parity import Parity, compare

__all__ = [
    "Export",
    "OnnxNet",
    "Parity",
    "compare",
    "describe_onnx",
    "export_net",
    "read_onnx",
    "write_onnx",
]
