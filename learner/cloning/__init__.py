"""Clones behaviour: makes an agent that plays as recorded players did."""
