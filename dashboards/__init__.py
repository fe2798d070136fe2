"""Dashboards: Grafana boards built from code, checked in byte for byte.

A board is a function that returns panels; the JSON it yields is checked in, and a test rebuilds and compares
it. Every query uses only metrics from the catalogue in ``fleet``. To add a board: one function, one line in
the list of boards, and the rebuilt JSON.
"""
