"""The dashboard's pages: each `show` makes the blocks of one, from the source and its parameters.

What is in a page's address decides what it shows, so that every view is a link.
"""
