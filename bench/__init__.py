"""Measurements, printed as ratios of one run; nothing here passes or fails. `make bench` runs them all."""
