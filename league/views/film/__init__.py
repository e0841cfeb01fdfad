"""Films of replays: pictures in time, and files of them."""

from league.views.film.reel import Cut, Reel
from league.views.film.writers import FORMATS, film_json, write_film

__all__ = ["FORMATS", "Cut", "Reel", "film_json", "write_film"]
