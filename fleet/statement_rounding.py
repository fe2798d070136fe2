"""How a statement's exact lines become cents, so that every total on it adds up.

The problem. A statement is read in two directions. Each team adds up its own lines, and the
finance desk adds up each category over all teams, and both are compared with what was billed.
Rounding each line by itself fails both. Rounding each team by itself, the usual cure, fails
the second: in a real month the teams' `held` cents, each team rounded well, summed to one cent
less than `held` of the whole fleet, and a cent nobody can name stops a close.

Worked example, three lines of 0.005 (team a: held; team b: held and idle). They sum to 0.015,
so 0.02 is booked. By team: a 0.005, b 0.010, so b has 0.01 and a is lifted to 0.01. By
category: held 0.010, idle 0.005, so held has 0.01 and idle is lifted to 0.01. Only one
assignment honours both: a's held 0.01, b's held 0.00, b's idle 0.01. Largest remainder within
the teams alone breaks b's tie by name: it may give b's cent to held, and held shows 0.02.

The method. Whole-cent totals come first: the grand total, then its share by row (team) and by
column (category). Lines start from largest remainder inside their row, which fixes every row.
Then, while some column is above its total and another below, a cent is moved: down on one line
and up on another line *of the same row*, so rows stay right, along a chain of columns found
breadth first. Each chain takes one column down and one up by a cent, so it ends; when no chain
is left, no other choice of roundings is nearer to the column totals (the argument of maximum
flow). Rows win where both cannot be had: a team's total is what gets booked.

Rejected: a correction line (a cent no one owns is what we set out to avoid), rounding columns
first (the same fault, turned by a quarter), and a solver (a dependency for a dozen columns).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from fleet.exact import common_scale, from_units, require_decimal, require_digits, to_units


class Line(NamedTuple):
    """One exact amount of a statement: whose it is, under which heading, and how much."""

    row: str
    column: str
    amount: Decimal


@dataclass(slots=True)
class _Cell:
    """A line at work, in whole minor units: the floor of its amount and what the floor cut off."""

    index: int
    row: str
    column: str
    floor: int
    cut: int
    up: int = 0


_Move = tuple[_Cell, _Cell]


def round_lines(lines: Sequence[tuple[str, str, Decimal]], *, digits: int) -> list[Decimal]:
    """Round `(row, column, exact amount)` lines to `digits` decimals; the answer keeps their order.

    Several lines may share a row and a column. Guaranteed, with "unit" the minor unit:

    a. the grand total is the exact sum, rounded once, halves away from zero;
    b. each row's total is the floor of its exact sum, or one unit more for the rows cut most
       (ties by name), such that rows sum to the grand total;
    c. each line is the floor of its amount or one unit more, and a whole amount is untouched;
    d. column totals follow rule b as well, or come as near as a and c and the row totals allow.

    The order of the input never decides: ties fall to name, then to the exact amount. Lines
    alike in all three are interchangeable. Floors go toward minus infinity, so credits work
    alike. TypeError for floats, ValueError for NaN, infinities and negative `digits`.
    """
    if not lines:
        return []
    amounts = [require_decimal(amount, "amount") for _, _, amount in lines]
    scale = common_scale(amounts, require_digits(digits))
    per_unit = 10 ** (scale - digits)
    cells = []
    for index, (row, column, _) in enumerate(lines):
        floor, cut = divmod(to_units(amounts[index], scale), per_unit)
        cells.append(_Cell(index, row, column, floor, cut))
    # One canonical order for everything that follows; `index` only tells equal lines apart.
    cells.sort(key=lambda c: (c.row, c.column, -c.cut, c.floor, c.index))
    _lift_rows(cells, _whole_totals(((c.row, c) for c in cells), per_unit))
    _settle_columns(cells, _whole_totals(((c.column, c) for c in cells), per_unit))
    rounded = [Decimal(0)] * len(cells)
    for cell in cells:
        rounded[cell.index] = from_units(cell.floor + cell.up, digits)
    return rounded


def _whole_totals(keyed: Iterable[tuple[str, _Cell]], per_unit: int) -> dict[str, int]:
    """Largest-remainder totals, in units, of the exact sums by key; they sum to the grand total."""
    exact: dict[str, int] = {}
    for key, cell in keyed:
        exact[key] = exact.get(key, 0) + cell.floor * per_unit + cell.cut
    grand = sum(exact.values())
    grand_units, rest = divmod(abs(grand), per_unit)
    grand_units += 2 * rest >= per_unit
    totals = {key: value // per_unit for key, value in exact.items()}
    lifted = (grand_units if grand >= 0 else -grand_units) - sum(totals.values())
    for key in sorted(exact, key=lambda key: (-(exact[key] % per_unit), key))[:lifted]:
        totals[key] += 1
    return totals


def _lift_rows(cells: Sequence[_Cell], totals: dict[str, int]) -> None:
    """Lift the most cut lines of each row until the row has its total."""
    for row_cells in _grouped(cells, by_row=True).values():
        lifted = totals[row_cells[0].row] - sum(cell.floor for cell in row_cells)
        cut_cells = sorted((c for c in row_cells if c.cut), key=lambda c: -c.cut)
        # k cut lines sum to less than k units over their floors, so a row total, which is at
        # most the next whole unit, never asks for more than k lifts, nor for fewer than none.
        assert 0 <= lifted <= len(cut_cells)
        for cell in cut_cells[:lifted]:
            cell.up = 1


def _settle_columns(cells: Sequence[_Cell], totals: dict[str, int]) -> None:
    """Move cents within rows until the columns have their totals, or no chain of moves is left."""
    # The least cut line of a row is lowered and the most cut one lifted: nearest to exact.
    columns = _grouped(sorted(cells, key=lambda c: c.cut), by_row=False)
    rows = _grouped(sorted(cells, key=lambda c: -c.cut), by_row=True)
    surplus = {name: sum(c.floor + c.up for c in members) - totals[name] for name, members in columns.items()}
    while chain := _shortest_chain(columns, rows, surplus):
        for lowered, lifted in chain:
            lowered.up, lifted.up = 0, 1
        surplus[chain[0][0].column] -= 1
        surplus[chain[-1][1].column] += 1


def _shortest_chain(
    columns: dict[str, list[_Cell]], rows: dict[str, list[_Cell]], surplus: dict[str, int]
) -> list[_Move]:
    """The moves that carry one unit from a column above its total to one below; [] if none can."""
    queue = deque(sorted(name for name, units in surplus.items() if units > 0))
    came_by: dict[str, _Move | None] = dict.fromkeys(queue)
    seen_rows: set[str] = set()
    while queue:
        for lowered in columns[queue.popleft()]:
            if not lowered.up or lowered.row in seen_rows:
                continue
            seen_rows.add(lowered.row)
            for lifted in rows[lowered.row]:
                if lifted.up or not lifted.cut or lifted.column in came_by:
                    continue
                came_by[lifted.column] = (lowered, lifted)
                if surplus[lifted.column] < 0:
                    return _trace(came_by, lifted.column)
                queue.append(lifted.column)
    return []


def _trace(came_by: dict[str, _Move | None], column: str) -> list[_Move]:
    """The chain that reached `column`, from its start."""
    chain: list[_Move] = []
    move = came_by[column]
    while move is not None:
        chain.append(move)
        move = came_by[move[0].column]
    return chain[::-1]


def _grouped(cells: Iterable[_Cell], *, by_row: bool) -> dict[str, list[_Cell]]:
    groups: dict[str, list[_Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.row if by_row else cell.column, []).append(cell)
    return groups
