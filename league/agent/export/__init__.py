"""A snapshot as a file for other programs: Stable-Baselines3, ONNX, or a self-contained folder."""
