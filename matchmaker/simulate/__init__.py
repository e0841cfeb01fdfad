"""Leagues of made-up players whose true win chances are known, played through the real
matchmaker.
"""
