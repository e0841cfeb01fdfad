"""Makes the dashboard's pages. Each `show` makes a page's blocks from the source and parameters.

The parameters are in the page's address, so every view is a link.
"""
