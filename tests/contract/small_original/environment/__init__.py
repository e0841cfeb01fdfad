"""A stand-in for a checkout of the original: its interface, and rules that fit in a screen."""
