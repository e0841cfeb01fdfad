"""A snapshot as a file for other programs: Stable-Baselines3, ONNX, or a folder that plays by
itself.

Nothing here is imported by the program that reads such a file.
"""
