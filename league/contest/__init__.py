"""Finds leagues and their members for commands, and plays the commands' matches."""
