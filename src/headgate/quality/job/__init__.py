"""The quality job on Spark. Only this folder of the capability imports Spark and the engine's batch protocol.

`run` starts a run; `topic` follows a topic batch by batch, `batch` judges one batch and stages what it writes,
`snapshot` judges a table of the lake as a whole, `windows` reads partials and closes windows.
"""
