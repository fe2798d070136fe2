"""Charts as Vega-Lite specifications: plain dictionaries, built in microseconds, with a fixed colour per meaning.

The colours are told apart by colour-blind readers (after Okabe and Ito); every state is also named in words. Times are
sent as wall-clock milliseconds of the reporting zone and drawn on a UTC scale, so that no browser shifts a day.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from app.text import MICROSECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Spec: TypeAlias = dict[str, Any]

CATEGORY: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "used": ("Used", "#009E73"),
        "held_idle": ("Held, measured as unused", "#E69F00"),
        "held": ("Held (activity not measured)", "#0072B2"),
        "serving": ("Model serving", "#56B4E9"),
        "idle": ("Share of idle", "#9AA3AE"),
        "unused_commitment": ("Unused commitment", "#D55E00"),
        "overhead": ("Overhead", "#B8A13B"),
        "unknown": ("Unknown (meter blind)", "#CC79A7"),
        "unattributed": ("Unattributed", "#882255"),
        "tax": ("Tax", "#6B6ECF"),
        "credit": ("Credit", "#44AA99"),
        "adjustment": ("Adjustment", "#8C6D31"),
        "rounding": ("Rounding", "#637381"),
    }
)
"""Each category's words and colour, in the order in which charts stack them."""
DIRECT: Final = ("used", "held_idle", "held")
"""Categories of what a team had itself; `serving` is what it asked of model servers, all others are shares."""
MEANING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "used": "held by the team, and measured as busy",
        "held_idle": "GPUs that did nothing, and the hours in which nobody asked a model server; paid by its owner",
        "held": "held by the team; whether it worked is not known",
        "serving": "what tenants used of shared model servers, by weighted tokens",
        "idle": "the team's share of what nobody held",
        "unused_commitment": "commitments that were paid and not used",
        "overhead": "what is no GPU node, such as control planes, storage and network",
        "unknown": "the meter was blind, so nobody can say who held it",
        "unattributed": "cost that no team answers for: of GPUs whose owner has no team, and of requests to model "
        "servers whose tokens nobody reported",
        "tax": "tax of the invoice",
        "credit": "credits of the invoice",
        "adjustment": "corrections of earlier months",
        "rounding": "the provider's own rounding lines",
    }
)
"""Each category in a sentence."""

HELD, IDLE, QUEUED, CAPACITY, QUOTA = "Held", "Idle", "Queued", "Capacity", "Quota"
SERIES: Final = MappingProxyType(
    {HELD: "#0072B2", IDLE: "#C9CFD6", QUEUED: "#D55E00", CAPACITY: "#637381", QUOTA: "#009E73"}
)
STOP, CONFLICT = "Stop: no GPU of the pool was held", "Quota files disagree"
BANDS: Final = MappingProxyType({STOP: "#D55E00", CONFLICT: "#CC79A7"})
_LEGEND: Final = {"orient": "top", "title": None, "labelLimit": 320, "symbolType": "square"}


def word(category: str) -> str:
    """A category in words."""
    return CATEGORY.get(category, (category.replace("_", " ").capitalize(), ""))[0]


def meanings(categories: Sequence[str]) -> str:
    """What these categories mean, as one line below a table."""
    return " ".join(f"{word(name)}: {MEANING[name]}." for name in categories if name in MEANING)


def ranked(categories: set[str]) -> list[str]:
    """Categories in their fixed order, unknown ones last."""
    known = list(CATEGORY)
    return sorted(categories, key=lambda name: (known.index(name) if name in known else len(known), name))


def show_chart(data: pa.Table | None, spec: Spec, *, height: int) -> None:
    """Draw a chart; the description is its text for screen readers."""
    st.vega_lite_chart(data, spec, width="stretch", height=height)


def gpu_series(table: pa.Table, columns: Mapping[str, str], suffix: str = "") -> pa.Table:
    """Hourly GPU time as GPUs for a chart: `at` in wall-clock milliseconds, and each wanted column by its measure."""
    wall_us = table["local_start"].cast(pa.int64())
    series = {"at": pc.divide(wall_us.cast(pa.float64()), 1000.0)}
    for name, measure in columns.items():
        values = table[f"{measure}_gpu_microseconds{suffix}"].cast(pa.float64())
        series[name] = pc.round(pc.divide(values, float(MICROSECONDS_PER_HOUR)), 3)
    return pa.table(series)


def team_bars(categories: Sequence[str], currency: str, order: Sequence[str], description: str) -> Spec:
    """Stacked bars, one a team in the given order: data has `team`, `category` (words), `amount`, `rank`."""
    return {
        "description": description,
        "mark": {"type": "bar", "height": {"band": 0.72}},
        "encoding": {
            "y": {"field": "team", "type": "nominal", "sort": list(order), "title": None, "axis": {"labelLimit": 150}},
            "x": _money_axis("amount", f"{currency}, total of the month"),
            "color": _category_colour(categories),
            "order": {"field": "rank", "type": "quantitative"},
            "tooltip": [
                {"field": "team", "type": "nominal", "title": "Team"},
                {"field": "category", "type": "nominal", "title": "Category"},
                {"field": "shown", "type": "nominal", "title": currency},
            ],
        },
    }


def daily_bars(categories: Sequence[str], currency: str, zone: str, days: Sequence[str], description: str) -> Spec:
    """Stacked bars, one a day: data has `day` (text), `category` (words), `amount`, `rank`."""
    return {
        "description": description,
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "day",
                "type": "ordinal",
                "title": f"day ({zone})",
                "scale": {"domain": list(days)},
                "axis": {"labelExpr": "+slice(datum.value, 8)", "labelAngle": 0, "labelOverlap": True},
            },
            "y": _money_axis("amount", f"{currency} per day"),
            "color": _category_colour(categories),
            "order": {"field": "rank", "type": "quantitative"},
            "tooltip": [
                {"field": "day", "type": "nominal", "title": "Day"},
                {"field": "category", "type": "nominal", "title": "Category"},
                {"field": "shown", "type": "nominal", "title": currency},
            ],
        },
    }


def fleet_curve(bands: Sequence[Mapping[str, Any]], zone: str, description: str) -> Spec:
    """Held and idle up to the capacity, queued beside them: data has `at` (ms), `held`, `capacity`, `queued`."""
    layers = [
        _series("area", "held", HELD, opacity=0.85),
        _series("area", "capacity", IDLE, y2="held", opacity=0.6),
        *_band_layers(bands),
        _series("line", "queued", QUEUED),
    ]
    return _time_chart(layers, (HELD, IDLE, QUEUED), "GPUs, mean of the hour", zone, description)


def team_curve(bands: Sequence[Mapping[str, Any]], zone: str, description: str) -> Spec:
    """One team's GPUs: data has `at` (ms), `held`, `quota`, `queued`."""
    layers = [
        _series("area", "held", HELD, opacity=0.75),
        *_band_layers(bands),
        _series("line", "quota", QUOTA, interpolate="step-after", strokeDash=[6, 3]),
        _series("line", "queued", QUEUED),
    ]
    return _time_chart(layers, (HELD, QUOTA, QUEUED), "GPUs, mean of the hour", zone, description)


def _time_chart(layers: list[Spec], series: Sequence[str], title: str, zone: str, description: str) -> Spec:
    colour = {"domain": list(series), "range": [SERIES[name] for name in series]}
    for layer in layers:
        encoding = layer["encoding"]
        if "datum" in encoding.get("color", {}):
            encoding["color"] |= {"scale": colour, "legend": _LEGEND}
        if "y" in encoding and "field" in encoding["y"]:
            encoding["y"] |= {"title": title, "axis": {"format": ",.0f"}}
        encoding["x"] |= {
            "scale": {"type": "utc"},
            "title": f"time ({zone})",
            "axis": {"format": "%-d %b", "tickCount": 10, "labelOverlap": True},
        }
    return {"description": description, "layer": layers}


def _series(mark: str, field: str, name: str, y2: str | None = None, **style: Any) -> Spec:
    encoding: Spec = {
        "x": {"field": "at", "type": "temporal"},
        "y": {"field": field, "type": "quantitative", "stack": None},
        "color": {"datum": name},
        "tooltip": [
            {"field": "at", "type": "temporal", "timeUnit": "utcyearmonthdatehours", "title": "Hour"},
            {"field": field, "type": "quantitative", "format": ",.1f", "title": f"{name} GPUs" if not y2 else CAPACITY},
        ],
    }
    if y2:
        encoding["y2"] = {"field": y2}
    return {"mark": {"type": mark, "strokeWidth": 2 if mark == "line" else 0} | style, "encoding": encoding}


def _band_layers(bands: Sequence[Mapping[str, Any]]) -> list[Spec]:
    """Shaded stretches with their number on top: each band has `from`, `to` (ms), `kind`, `mark`, `words`."""
    if not bands:
        return []
    span = {"x": {"field": "from", "type": "temporal"}, "x2": {"field": "to"}}
    tooltip = [{"field": "words", "type": "nominal", "title": "Event"}]
    data = {"values": [dict(band) for band in bands]}
    scale = {"domain": list(BANDS), "range": list(BANDS.values())}
    kind = {"field": "kind", "type": "nominal", "scale": scale, "legend": None}
    return [
        {
            "data": data,
            "mark": {"type": "rect", "fillOpacity": 0.3, "strokeOpacity": 0.9, "strokeWidth": 1},
            "encoding": {**span, "fill": kind, "stroke": kind, "tooltip": tooltip},
        },
        {
            "data": data,
            "mark": {"type": "text", "baseline": "bottom", "dy": -3, "fontSize": 13, "fontWeight": 700},
            "encoding": {
                "x": {"field": "middle", "type": "temporal"},
                "y": {"value": 0},
                "text": {"field": "mark", "type": "nominal"},
                "fill": kind,
                "tooltip": tooltip,
            },
        },
    ]


def _money_axis(field: str, title: str) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "axis": {"format": ",.0f", "tickCount": 6}}


def _category_colour(categories: Sequence[str]) -> Spec:
    shown = [word(name) for name in categories]
    colours = [CATEGORY.get(name, ("", "#637381"))[1] for name in categories]
    return {"field": "category", "type": "nominal", "legend": _LEGEND, "scale": {"domain": shown, "range": colours}}
