"""The plots, as SVG for light and dark backgrounds: grays and colors of medium lightness, no background."""

import html
import math

WIDTH = 760
GRAY = "#808890"
OURS = "#d9682b"
COLORS = [OURS, "#3b82c4", "#3f9b5c", "#a46bc2", "#b59a2d", "#c25b78"]


def document(height, title, parts):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="13" role="img" aria-label="{html.escape(title)}">\n'
        f'<text x="8" y="20" font-size="15" font-weight="bold" fill="{GRAY}">{html.escape(title)}</text>\n'
        + "\n".join(parts) + "\n</svg>\n")


def label(x, y, text, anchor="start", color=GRAY):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}">{html.escape(str(text))}</text>'


def bars(title, values):
    """One horizontal bar for each candidate, the cheapest first."""
    parts, left, step = [], 190, 26
    room = WIDTH - left - 70
    largest = max(values.values())
    for number, (name, value) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        top = 36 + number * step
        width = max(value / largest * room, 1)
        color = OURS if name == "Martlet" else GRAY
        parts.append(label(left - 8, top + 14, name, "end", color))
        parts.append(f'<rect x="{left}" y="{top}" width="{width:.1f}" height="18" rx="2" fill="{color}"/>')
        parts.append(label(left + width + 6, top + 14, f"{value:.1f}", color=color))
    return document(44 + len(values) * step, title, parts)


def percentiles(title, series):
    """Latencies: `series` is name → {percentile: microseconds}. To the right the share of requests that took longer falls."""
    inner = {name: {at: value for at, value in line.items() if 0 < float(at) < 100} for name, line in series.items()}
    return lines(title, inner, rarity, [(at, f"p{at:g}") for at in (50, 75, 90, 95, 99, 99.5, 99.9)])


def by_number(title, series):
    """Costs: `series` is name → {number: microseconds}; to the right the number rises, by its logarithm."""
    numbers = sorted({at for line in series.values() for at in line})
    return lines(title, series, math.log10, [(at, f"{at:,}") for at in numbers])


def lines(title, series, position, ticks):
    """One line for each name of `series`: name → {x: microseconds}. `position` is where an x is on its axis, `ticks` are those
    with a label. Upwards the time rises, by its logarithm."""
    height, left, right, top, bottom = 340, 64, 150, 40, 300
    points = {name: [(float(at), max(value, 1)) for at, value in values.items()] for name, values in series.items()}
    every = [point for line in points.values() for point in line]
    low, high = (math.floor(math.log10(min(value for _, value in every)) * 4) / 4,
                 math.ceil(math.log10(max(value for _, value in every)) * 4) / 4)
    first, last = position(min(at for at, _ in every)), position(max(at for at, _ in every))

    def x(at):
        return left + (position(at) - first) / ((last - first) or 1) * (WIDTH - left - right)

    def y(value):
        return bottom - (math.log10(value) - low) / ((high - low) or 1) * (bottom - top)

    parts = []
    for value in [base * 10 ** power for power in range(0, 7) for base in (1, 2, 5)]:
        if low <= math.log10(value) <= high:
            parts.append(f'<path d="M{left} {y(value):.1f}H{WIDTH - right}" stroke="{GRAY}" stroke-opacity="0.3"/>')
            parts.append(label(left - 6, y(value) + 4, f"{value:,}", "end"))
    for at, text in ticks:
        if first <= position(at) <= last:
            parts.append(label(x(at), bottom + 18, text, "middle"))
    for number, (name, line) in enumerate(points.items()):
        color = COLORS[number % len(COLORS)]
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in sorted(line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.5"/>')
        parts.append(f'<rect x="{WIDTH - right + 14}" y="{top + number * 24}" width="14" height="14" fill="{color}"/>')
        parts.append(label(WIDTH - right + 34, top + 12 + number * 24, name, color=color))
    return document(height, title, parts)


def rarity(percentile):
    """The rarity of taking longer, as a power of ten."""
    return -math.log10(1 - percentile / 100)
