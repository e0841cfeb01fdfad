"""Writes replays and runs as web pages, videos and images."""

from league.views.film.clip import Clip, Cut
from league.views.film.files import FORMATS, film_json, film_page, write_film

__all__ = ["FORMATS", "Clip", "Cut", "film_json", "film_page", "write_film"]
