"""Changes the league. A function that carries out a call of the service is named an act.

An act takes the league, the transaction, and the fields of the call's request. `incarnation` is the
number of the calling worker's incarnation.
"""
