"""Exports a snapshot for other programs: Stable-Baselines3, ONNX, or a self-contained folder."""
