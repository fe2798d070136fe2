"""The lakehouse: the only package that opens DuckDB and DuckLake, takes locks, runs SQL files and publishes builds."""
