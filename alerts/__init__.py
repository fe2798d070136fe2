"""Alerts: rules and routes that page a person once, with the next step in hand.

A rule lives in a YAML file named after its group, uses only metrics from the catalogue in ``fleet``, takes
its thresholds from the configuration, and has a runbook of the same name and tests for a firing and a silent
case. Code here renders and judges those files; sending is Alertmanager's work. CONTRIBUTING.md has the five
steps to add an alert.
"""
