"""Make ONNX Runtime really use the NVIDIA GPU."""

__version__ = "0.1.0"
