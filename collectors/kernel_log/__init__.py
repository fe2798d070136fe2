"""The kernel log: Xid and SXid lines as events."""
