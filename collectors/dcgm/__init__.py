"""DCGM: the metrics of one dcgm-exporter, both name generations, as device samples."""
