"""Exporters: what leaves the process, as a metrics page or over a wire.

An exporter turns samples into a page that Prometheus scrapes, or into messages for the hub. Families are
built fresh at each scrape on an own registry, so a pod that left is gone from the next page. This package is
the only home of ``prometheus_client``. A metric is exposed only if the catalogue in ``fleet`` has its name,
unit and labels; to add one, add it there first. Exporters are handed samples or published facts by
``services``; they import no collector and no cost model.
"""
