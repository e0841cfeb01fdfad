"""Makes the dashboard's pages.

Each module has a function `show`, which returns the blocks of a page. The source provides the facts
of the league and of the run. The parameters come from the page's address, so every view has a link.
"""
