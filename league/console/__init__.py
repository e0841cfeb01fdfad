"""Provides parts that all commands share: flags, tables, and text for a terminal."""
