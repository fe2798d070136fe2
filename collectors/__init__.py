"""Collectors: one module reads one source of facts about devices, engines or holders.

A collector is a class with one method, ``collect()``, that returns a ``Reading``: samples in the names and units of
``samples``, and what was refused. It reads files, local sockets and HTTP pages; it never needs root, never runs a
command and never writes. Whether it was in time, failed or had nothing to say is judged in one place around it, not
inside. Each module is named after its source and is listed by name in the package's registry; nothing happens
at import. Collectors know nothing of exporters, money or the store. CONTRIBUTING.md has the five steps to add
one.
"""
