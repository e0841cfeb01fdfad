"""Changes the league. Each act takes the league, the transaction, and the fields of its call.

`incarnation` is the number of the calling worker's incarnation.
"""
