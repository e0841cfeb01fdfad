"""Makes the dashboard's pages. Each `show` makes a page's blocks from the source and parameters.

The parameters come from the page's address, so every view has a link.
"""
