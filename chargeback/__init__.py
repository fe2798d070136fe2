"""The cost model: inputs of a period to a balanced ledger, a statement for every team, and the file finance books."""
