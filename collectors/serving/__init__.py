"""Model servers: what vLLM, SGLang and their like say on their metric pages, in one vocabulary.

Each engine is a mapping (data, in `engines`); one reader serves them all. `page` finds the known series of a page,
`deltas` turns counters into steps series by series, `rows` puts either into canonical rows, and `collector` visits
a server.
"""
