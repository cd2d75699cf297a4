"""One line of the table."""

import dataclasses
import statistics

from publication import NOT_MEASURED


@dataclasses.dataclass
class Row:
    """A measurement and its bar.

    `ratio` is the median of the rounds with the best and the worst, or None; `met` is None where there is no bar. A row
    that is not public is for the terminal alone."""

    title: str
    martlet: str
    peer: str = "–"
    ratio: tuple | None = None
    bar: str = "–"
    met: bool | None = None
    note: str = ""
    is_public: bool = True
    figures: dict = dataclasses.field(default_factory=dict)

    @property
    def result(self):
        return {True: "met", False: "MISSED", None: ""}[self.met]

    @property
    def ratio_text(self):
        if self.ratio is None:
            return "–"
        return f"{self.ratio[0]:.2f} ({self.ratio[1]:.2f}, {self.ratio[2]:.2f})"


def microseconds(values):
    return f"{statistics.median(values):.1f} µs"


def milliseconds(values):
    return f"{statistics.median(values) / 1000:.2f} ms"


def missed(title, why, bar="–"):
    """A row that could not be measured."""
    return Row(title, f"{NOT_MEASURED}: {why}", bar=bar, met=False)
