"""From parsed TOML to frozen dataclasses, driven by the dataclasses themselves.

The fields are the schema: their names are the allowed keys, their types say what a value must
be, their defaults fill what is absent. A class may judge its own values in `__post_init__` by
raising `FieldError`. Whatever is wrong is reported with the dotted path of the key. Where a table
may be one of several classes, each has a field `kind` of its own word, and the table names it.
"""

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from fleet.address import split_address
from fleet.errors import quoted

T = TypeVar("T")

KEYS = "keys"
"""Metadata of a `Mapping` field: the tuple of keys it may have."""
KIND = "kind"
"""The key that tells which of several classes a table is."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
_TYPE_NAMES = types.MappingProxyType(
    {str: "a string", int: "a whole number", bool: "true or false", float: "a decimal number",
     list: "a list", dict: "a table"}
)  # fmt: skip


class BindError(ValueError):
    """A value of the text does not fit the schema; the message starts with or names its path."""


class FieldError(ValueError):
    """Raised by a dataclass about the value of one of its own fields."""

    def __init__(self, field: str, message: str) -> None:
        """Name the field and say what is wrong with its value."""
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def checked_address(field: str, text: str) -> None:
    """FieldError unless the value of a field is HOST:PORT."""
    try:
        split_address(text)
    except ValueError as error:
        raise FieldError(field, str(error)) from None


def bind(cls: type[T], table: Mapping[str, object], path: str = "") -> T:
    """An instance of the dataclass `cls` from a TOML table found at `path`.

    BindError for an unknown key (with the nearest known one), a missing key without default,
    a value of the wrong type, or a value the class refuses.
    """
    own = {field.name: field for field in fields(cast("Any", cls))}
    hints = get_type_hints(cls)
    _refuse_unknown(table, tuple(own), path)
    values: dict[str, object] = {}
    for name, field in own.items():
        if name in table:
            values[name] = _bound(hints[name], table[name], _join(path, name), field)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise BindError(f"{_join(path, name)} is missing")
    try:
        return cls(**values)
    except FieldError as error:
        raise BindError(f"{_join(path, error.field)}: {error.message}") from None


def _bound(hint: Any, value: object, path: str, field: Field[Any]) -> object:
    origin = get_origin(hint)
    if origin is Literal:
        return _one_of(get_args(hint), value, path)
    if origin is tuple:
        items = cast("list[object]", _typed(list, value, path))
        return tuple(_bound(get_args(hint)[0], item, f"{path}[{i}]", field) for i, item in enumerate(items))
    if origin in (dict, Mapping):
        entries = cast("dict[str, object]", _typed(dict, value, path))
        if KEYS in field.metadata:
            _refuse_unknown(entries, field.metadata[KEYS], path)
        of = get_args(hint)[1]
        return {key: _bound(of, item, _join(path, key), field) for key, item in entries.items()}
    if origin in (types.UnionType, Union):
        return _one_class(get_args(hint), cast("dict[str, object]", _typed(dict, value, path)), path)
    if is_dataclass(hint):
        return bind(cast("type[object]", hint), cast("dict[str, object]", _typed(dict, value, path)), path)
    if hint is Path:
        return Path(cast("str", _typed(str, value, path)))
    return _typed(hint, value, path)


def _one_class(classes: tuple[type[object], ...], table: Mapping[str, object], path: str) -> object:
    """The table as that of the classes whose `kind` it names."""
    by_kind = {get_args(get_type_hints(cls)[KIND])[0]: cls for cls in classes}
    if KIND not in table:
        raise BindError(f"{_join(path, KIND)} is missing: one of {', '.join(map(repr, by_kind))}")
    kind = _one_of(tuple(by_kind), table[KIND], _join(path, KIND))
    return bind(by_kind[cast("str", kind)], table, path)


def _typed(expected: type, value: object, path: str) -> object:
    # Exactly the type: a bool is an int to Python, but `port = true` is a mistake.
    if type(value) is not expected:
        found = _TYPE_NAMES.get(type(value), "a date or time")
        raise BindError(f"{path} must be {_TYPE_NAMES[expected]}, not {found}")
    return value


def _one_of(allowed: tuple[object, ...], value: object, path: str) -> object:
    for choice in allowed:
        if type(value) is type(choice) and value == choice:
            return choice
    shown = quoted(value) if isinstance(value, str) else _TYPE_NAMES.get(type(value), "a date or time")
    raise BindError(f"{path} must be one of {', '.join(map(repr, allowed))}, not {shown}")


def _refuse_unknown(table: Mapping[str, object], known: tuple[str, ...], path: str) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key[:60], known, n=1)
            hint = f"; did you mean {_join(path, near[0])}?" if near else f"; known keys: {', '.join(known)}"
            raise BindError(f"unknown key {_join(path, key)}{hint}")


def _join(path: str, key: str) -> str:
    shown = key if _BARE_KEY.fullmatch(key) else quoted(key)
    return f"{path}.{shown}" if path else shown
