"""The league in a browser: pages that are pure functions of what the services say."""
