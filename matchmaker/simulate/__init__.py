"""Simulates leagues: made-up players with known chances, played through the real matchmaker."""
