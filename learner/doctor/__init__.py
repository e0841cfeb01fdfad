"""`league doctor`: why does an agent not learn?

`play` and `probe` measure a game and a short training, `run` reads a run's files; `checks` and
`run` judge each reason in a `Finding`; `findings` puts consequences under their causes; `report`
shows them.
"""
