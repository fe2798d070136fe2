"""The section `[hub]` of `gputally.toml`: where the hub listens, whom it believes, how much it takes at once."""

from dataclasses import dataclass, fields

from fleet.binding import FieldError, checked_address


@dataclass(frozen=True, slots=True)
class Hub:
    """How the hub receives telemetry and how long it is kept. Empty texts mean: none."""

    listen: str = "127.0.0.1:9470"
    metrics_listen: str = "127.0.0.1:9471"
    tls_certificate: str = ""
    tls_key: str = ""
    client_ca: str = ""
    token_file: str = ""
    metrics_tls: bool = False
    insecure: bool = False
    group_rows: int = 100_000
    group_milliseconds: int = 200
    queue_rows: int = 500_000
    queue_mebibytes: int = 256
    batch_rows: int = 100_000
    batch_mebibytes: int = 8
    drain_seconds: int = 25
    retention_days: int = 400
    snapshot_hours: int = 24
    maintain_minutes: int = 10

    def __post_init__(self) -> None:
        """Refuse addresses without a port, numbers below 1 and what belongs together and is not."""
        for name in ("listen", "metrics_listen"):
            checked_address(name, getattr(self, name))
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is int and not 1 <= value <= 1_000_000_000:
                raise FieldError(field.name, f"must be from 1 to 1000000000, not {value}")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise FieldError("tls_key", "tls_certificate and tls_key are given together or not at all")
        if (self.client_ca or self.metrics_tls) and not self.tls_certificate:
            raise FieldError("tls_certificate", "client_ca and metrics_tls need a certificate of the hub's own")
        if self.queue_rows < self.batch_rows or self.queue_mebibytes < self.batch_mebibytes:
            raise FieldError("queue_rows", "the queue must hold at least one batch")
        if self.batch_mebibytes > 256:
            raise FieldError("batch_mebibytes", f"must be at most 256, not {self.batch_mebibytes}")


HUB_TEMPLATE = """
[hub]
# Address on which agents reach the hub (gRPC). Beyond this machine it needs TLS with client_ca or
# token_file, or `insecure = true`.
listen = "127.0.0.1:9470"
# Address of its own /metrics, /healthz and /readyz.
metrics_listen = "127.0.0.1:9471"
# The hub's certificate, PEM; paths are relative to this folder. Empty: no TLS.
tls_certificate = ""
# Its private key, PEM.
tls_key = ""
# Certificates that sign those of agents, PEM: an agent's certificate must name its node.
client_ca = ""
# File with one `NODE TOKEN` a line; node * is a token for the whole fleet. Read again when it changes.
token_file = ""
# Serve /metrics over TLS too, with the same certificate.
metrics_tls = false
# Listen beyond this machine without TLS, or without knowing who sends.
insecure = false
# A commit holds at most about this many rows.
group_rows = 100000
# A batch waits at most this long for others before they are committed together.
group_milliseconds = 200
# Rows received and not yet committed; beyond, senders wait.
queue_rows = 500000
# Their size.
queue_mebibytes = 256
# Rows of one batch; a larger one is refused.
batch_rows = 100000
# Size of one batch; a larger one is refused.
batch_mebibytes = 8
# Time to commit what has arrived, when the hub is told to stop.
drain_seconds = 25
# Windows and holdings are kept this long, and longer where a published month was built from them.
retention_days = 400
# The lake's history is kept this long; what published builds were computed from, always.
snapshot_hours = 24
# Pause between two rounds of `gputally maintain`. A query that takes longer may find its files gone.
maintain_minutes = 10
"""
