"""`league doctor`: why does it not learn? Measures the game, the rewards, the network and the
updates.

`evidence` is gathered once; each reason is a function from it to a `Finding`; `causes` puts
consequences under what caused them; `report` shows them.
"""
