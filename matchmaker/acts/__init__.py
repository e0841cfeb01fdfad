"""Changes the league. An act is a function that carries out a call of the service.

An act takes the league, the transaction, and the fields of the call's request. The argument
`incarnation` is the number of the calling worker's incarnation. Each start of a worker opens a new
incarnation.
"""
