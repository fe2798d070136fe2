"""Which row a series belongs to: the model and the engine index that its labels name, or the only ones there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from collectors.serving.labels import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collectors.serving.labels import Point
    from collectors.serving.mapping import EngineMapping

Place: TypeAlias = tuple[str | None, str | None]
"""A model and an engine index; None for all of them."""


class Places:
    """The places of the series of one page.

    A series without a model belongs to the only model there is, one without an index to the only index of its model;
    with several it stands for all of them, in a place of its own.
    """

    def __init__(self, mapping: EngineMapping, model: str | None, points: Iterable[Point]) -> None:
        self._mapping = mapping
        self._named = {point.key: self._labels(point.labels) for point in points}
        self._spellings: dict[str, str] = {}
        for name, _ in self._named.values():
            if name is not None:
                # Where case does not count, the spelling with capitals is the model's own.
                folded = self._folded(name)
                self._spellings[folded] = min(name, self._spellings.get(folded, name))
        self._only = next(iter(self._spellings)) if len(self._spellings) == 1 else None
        if not self._spellings and model is not None:
            self._only = self._folded(model)
            self._spellings[self._only] = model
        self._indices: dict[str | None, set[str]] = {}
        for name, index in self._named.values():
            if index is not None:
                self._indices.setdefault(self._model(name), set()).add(index)

    def of(self, point: Point) -> Place:
        """The place of a series."""
        name, index = self._named[point.key]
        model = self._model(name)
        if index is None and len(found := self._indices.get(model, set())) == 1:
            (index,) = found
        return (None if model is None else self._spellings[model]), index

    def _labels(self, labels: Mapping[str, str]) -> Place:
        return text(labels, self._mapping.model_labels), text(labels, self._mapping.index_labels)

    def _folded(self, name: str) -> str:
        return name.casefold() if self._mapping.model_ignores_case else name

    def _model(self, name: str | None) -> str | None:
        return self._only if name is None else self._folded(name)
