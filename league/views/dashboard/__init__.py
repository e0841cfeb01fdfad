"""Shows the league in a browser. Its pages are pure functions of the services' replies."""
