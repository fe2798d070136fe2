"""Addresses of servers, HOST:PORT, and whether one stays on this machine."""

import ipaddress

from fleet.errors import quoted


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`; an IPv6 host stands in brackets. ValueError when it is no such address."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{quoted(text)}: put an IPv6 address into brackets, [::1]:9472")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{quoted(text)} is not host:port")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether what is sent to a host stays on this machine; a name other than `localhost` may lead anywhere."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
