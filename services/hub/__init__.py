"""The hub: receives telemetry from node agents and commits it to the lake before it answers."""
