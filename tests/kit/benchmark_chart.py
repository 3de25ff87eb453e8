"""Generator of ``docs/pictures/benchmarks.svg``, a chart of the first table in
``docs/benchmarks.md``.

``python -m tests.kit.benchmark_chart`` writes it; `tests/structure` checks that it is current.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/benchmarks.md"
PICTURE = ROOT / "docs/pictures/benchmarks.svg"
HEADING = "| Work | Asterism | DGL |"
SERIES = ("Asterism, embedded", "Asterism, direct", "Asterism, over gRPC", "GraphBolt", "PyG")
CLASSES = ("embedded", "direct", "grpc", "bolt", "pyg")
LOWEST, HIGHEST = 0.05, 1000.0
"""Ends of the logarithmic axis, as multiples of the speed of DGL."""
LEFT, RIGHT, TOP, WIDTH = 206, 60, 84, 900
BAR, STEP, GAP = 13, 16, 12
STYLE = """
text{font:14px system-ui,sans-serif;fill:#1f2937}
.small{font-size:12px;fill:#4b5563}
.title{font-size:16px;font-weight:600}
.back{fill:#ffffff}
.grid{stroke:#d1d5db;stroke-width:1}
.one{stroke:#4b5563;stroke-width:1.6}
.embedded{fill:#4f46e5}.direct{fill:#818cf8}.grpc{fill:#c7d2fe;stroke:#4f46e5}
.bolt{fill:#ea580c}.pyg{fill:#059669}
@media (prefers-color-scheme: dark){
.back{fill:#111827}text{fill:#e5e7eb}.small{fill:#cbd5e1}
.grid{stroke:#374151}.one{stroke:#9ca3af}
.embedded{fill:#818cf8}.direct{fill:#4f46e5}.grpc{fill:#312e81;stroke:#a5b4fc}
.bolt{fill:#fb923c}.pyg{fill:#34d399}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The speed of one library or mode at one kind of work."""

    series: int
    """Index in `SERIES`."""
    speed: float
    """Multiple of the speed of DGL in the same run."""


def read_bars(page: str) -> dict[str, list[Bar]]:
    """Return the bars of each kind of work, in the order of the page's table.

    Parameters
    ----------
    page : str
        The page in Markdown. The first cell of a row is the work, the mode and the unit.
    """
    lines = page[page.index(HEADING) :].splitlines()[2:]
    bars: dict[str, list[Bar]] = {}
    for line in lines:
        if not line.startswith("|"):
            break
        name, _, dgl, speed, *others = (cell.strip() for cell in line.split("|")[1:-1])
        work, mode, _ = name.split(", ")
        own_bars = bars.setdefault(work, [])
        series = SERIES.index(f"Asterism, {mode}")
        own_bars.append(Bar(series=series, speed=number(speed)))
        own_bars.extend(
            Bar(series=index, speed=number(dgl) / number(cell))
            for index, cell in enumerate(others, SERIES.index("GraphBolt"))
            if cell
        )
    return {
        work: sorted(own_bars, key=lambda own_bar: own_bar.series)
        for work, own_bars in bars.items()
    }


def number(cell: str) -> float:
    """Return the number in a cell, which may have commas between thousands."""
    return float(cell.replace(",", ""))


def position(speed: float) -> float:
    """Return the position of a speed on the axis, in pixels."""
    share = math.log(speed / LOWEST) / math.log(HIGHEST / LOWEST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def label(speed: float) -> str:
    """Return a speed as text with two or three digits, in the format of the page."""
    return f"{speed:.2g}" if speed < 1 else f"{speed:.3g}"


def draw(bars: dict[str, list[Bar]]) -> str:
    """Return the chart as SVG."""
    height = TOP + sum(len(own_bars) * STEP + GAP for own_bars in bars.values()) + 30
    bottom = height - 26
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="t d">'
        ),
        '<title id="t">Speed relative to DGL 1.1.3</title>',
        f'<desc id="d">{escape(describe(bars))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}" rx="10"/>',
        '<text class="title" x="20" y="28">Speed relative to DGL 1.1.3 (= 1), log scale</text>',
    ]
    x = 20
    for name, kind in zip(SERIES, CLASSES, strict=True):
        parts.append(f'<rect class="{kind}" x="{x}" y="42" width="14" height="12" rx="2"/>')
        parts.append(f'<text class="small" x="{x + 20}" y="52">{name}</text>')
        x += 44 + 7 * len(name)
    for tick in (0.1, 1, 10, 100, 1000):
        at, kind = position(tick), "one" if tick == 1 else "grid"
        parts.append(
            f'<line class="{kind}" x1="{at:.1f}" y1="{TOP - 12}" x2="{at:.1f}" y2="{bottom}"/>'
        )
        parts.append(
            f'<text class="small" x="{at:.1f}" y="{height - 10}" text-anchor="middle">'
            f"{tick:g}</text>"
        )
    y = TOP
    for work, own_bars in bars.items():
        middle = y + len(own_bars) * STEP / 2 + 2
        parts.append(f'<text x="{LEFT - 10}" y="{middle:.1f}" text-anchor="end">{work}</text>')
        for own_bar in own_bars:
            start, end = sorted((position(1), position(own_bar.speed)))
            parts.append(
                f'<rect class="{CLASSES[own_bar.series]}" x="{start:.1f}" y="{y}" '
                f'width="{max(end - start, 1.5):.1f}" height="{BAR}" rx="2"/>'
            )
            after = own_bar.speed >= 1
            at, anchor = (end + 5, "start") if after else (start - 5, "end")
            parts.append(
                f'<text class="small" x="{at:.1f}" y="{y + 11}" text-anchor="{anchor}">'
                f"{label(own_bar.speed)}</text>"
            )
            y += STEP
        y += GAP
    return "\n".join([*parts, "</svg>", ""])


def describe(bars: dict[str, list[Bar]]) -> str:
    """Return a description of the chart, for readers who cannot see it."""
    return "; ".join(
        f"{work}: "
        + ", ".join(f"{SERIES[own_bar.series]} {label(own_bar.speed)}" for own_bar in own_bars)
        for work, own_bars in bars.items()
    )


def main() -> None:
    PICTURE.write_text(draw(read_bars(PAGE.read_text())))
    sys.stdout.write(f"{PICTURE}\n")


if __name__ == "__main__":
    main()
