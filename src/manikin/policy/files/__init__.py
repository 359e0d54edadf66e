"""Policy files: programs of ``torch.export``, read and run safely, and ONNX files."""
