"""Identities that every provider's charges keep: one SQL file each, held to a delivery before it counts.

A file selects the rows of `staged_charge` that break it: source_row, column_name, value, message. Its header names the
`Identity`, its `Severity` and its `Source`. An `error` quarantines the delivery, a `warn` is kept and shown.
"""
