"""Shows the league in a browser. Each page is a pure function of the services' replies."""
