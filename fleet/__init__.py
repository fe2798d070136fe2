"""The vocabulary of gputally: money, time, identity, metrics, configuration and errors.

Everything here depends on the standard library alone, so that the node agent, the hub, the
ledger and the portal can share one meaning for each word without sharing any other code.
"""
