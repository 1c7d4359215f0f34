"""A lane's readings on the tape, and where a replay of the lane stands among them. Pure: no clock, no file, no lane.

Read number n of a lane has one value on the tape: that of the last jump up to n, and a tick for each read since. A loop
that polls with sleep may go another number of rounds in a replay, and then the lane's reads are other reads than those
on the tape. So the first read after a sleep is a *mark* on the tape, and a replay finds its place again

- at a sleep: it goes on at the next mark; when the tape has no more of them before the lane's next request, time stands
  still for a while, so that what comes after the loop has the tape's time;
- where the tape slept on and the replay does not: at the first read after the tape's last round;
- at each request, for the tape says how many reads came before it.
"""

from __future__ import annotations

from _bisect import bisect_left, bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TICK = 100
"""ns from a read to the next, as in livetime: a tape is only right with the tick that it was recorded with."""

# So long time stands still in rounds that the tape does not have: who polls up to a deadline must come to it.
_ROUNDS = 64
_SLACK = 10_000_000_000  # ns


class Course:
    """One lane's. `marks`: the reads that came first after a sleep; `asked[n]`: reads before the lane's request n.

    A tape that was made before there were marks has neither, and is followed read by read.
    """

    __slots__ = (
        "asked",
        "beyond",  # reads in a row for which the tape has no place
        "end",
        "extra",  # rounds that the tape does not have, since the last request
        "marks",
        "numbers",
        "slack",  # ns slept in those
        "start",  # number of the read that began the present round
        "stop",  # number of the next read that does not simply tick
        "strayed",  # reads made, less their numbers on the tape, since the last request
        "values",
    )

    def __init__(
        self, jumps: Sequence[tuple[int, int]], marks: Sequence[int], asked: Sequence[int], end: int, requests: int = 0
    ) -> None:
        """`jumps` in order, the first of read 0; `end`: reads of the lane in all; `requests` made so far."""
        self.numbers = [n for n, _ in jumps]
        self.values = [ns for _, ns in jumps]
        self.marks, self.asked, self.end = marks, asked, end
        self.beyond = self.extra = self.slack = self.strayed = self.stop = 0
        self.start = self._bounds(requests)[0] - 1

    @property
    def aligned(self) -> bool:
        """Whether the tape knows of sleeps."""
        return bool(self.marks or self.asked)

    def value(self, n: int) -> int:
        """What read number `n` gave on the tape."""
        place = max(bisect_right(self.numbers, n) - 1, 0)
        return self.values[place] + TICK * (n - self.numbers[place])

    def read(self, n: int, time: int | None, rest: int | None, slept: bool, requests: int) -> tuple[int, int]:
        """Make a read that would be number `n`: its number (-1: the tape has no place for it) and its value.

        `time`: the lane's last value; `rest`: ns slept since then, None: not at all; `slept`: since the last request.
        """
        bounds = self._bounds(requests)
        number, least = self._place(n, time, rest, slept, bounds)
        self.strayed += n - number if number >= 0 else 1
        exact = self.value(number) if number >= 0 else 0
        value = max(exact, least)
        if time is not None and time < exact < least and not (self.extra or self.strayed) and self._jumps(number):
            value = exact  # of a fork that polled longer than its parent, and whose time stood still for that
        if number < 0:
            self.stop = n
            return number, value
        self.beyond = 0
        self.stop = self._next_stop(number, bounds[1] if slept or self.extra or self.strayed else self.end)
        if value != exact:
            self.stop = number + 1
        return number, value

    def _jumps(self, number: int) -> bool:
        return self.numbers[bisect_right(self.numbers, number) - 1] == number

    def request(self, n: int, reads: int, slept: bool) -> tuple[int, int]:
        """The lane makes its request number `n` after `reads`: how many it has really made, and where it goes on."""
        made = reads + self.strayed
        low, high = self._bounds(n)
        if n < len(self.asked) and (slept or self._marks_in(low, high)):
            reads = high
        self.start = reads - 1
        self.stop = reads
        self.beyond = self.extra = self.slack = self.strayed = 0
        return made, reads

    def _place(
        self, n: int, time: int | None, rest: int | None, slept: bool, bounds: tuple[int, int]
    ) -> tuple[int, int]:
        """The number on the tape, and the least value that the read may have."""
        least = 0 if time is None else time + TICK
        if not self.aligned:
            return n, least + (rest or 0)
        low, high = bounds
        if rest is not None:
            marks = self._marks_in(max(self.start + 1, low), high)
            if marks:
                self.start = marks[0]
                return marks[0], least
            return self._wait(n, least, rest, bounds)
        if n != self.start and low <= n < high and n in self._marks_in(n, n + 1):
            return self._leave(n, least, bounds)
        if n >= high and (slept or self.strayed) and high < self.end:
            return self._nowhere(least)
        return n, least - TICK + 1 if self.extra else least

    def _wait(self, n: int, least: int, rest: int, bounds: tuple[int, int]) -> tuple[int, int]:
        """Go another round, that the tape does not have."""
        self.extra += 1
        self.slack += rest
        if self.start < bounds[0]:  # the tape did not sleep here: a loop's round is one read, most often
            self.start = max(n - 1, bounds[0])
        # The last read before a request may be the loop's or the request's own: it is given again to the nanosecond.
        least -= TICK if self.start == bounds[1] - 1 else TICK - 1
        if self.extra > _ROUNDS or self.slack > _SLACK:
            least += rest
        return self.start, least

    def _leave(self, n: int, least: int, bounds: tuple[int, int]) -> tuple[int, int]:
        """Leave a loop in a round in which the tape did not: go on after the same reads of the tape's last round."""
        marks = self._marks_in(n, bounds[1])
        ends = [*marks[1:], bounds[1]]
        lengths = [end - marks[place] for place, end in enumerate(ends)]
        # A round's own reads: as many as were made in this one, or as the first round has that the tape slept before.
        own = n - self.start if self.start >= bounds[0] else lengths[0] if len(lengths) > 1 else 1
        for place, length in enumerate(lengths):
            if length > own:
                self.start = marks[place]
                return self.start + own, least
        return self._nowhere(least)

    def _nowhere(self, least: int) -> tuple[int, int]:
        # Ever bigger steps: a loop that does nothing but read must come to its deadline.
        least += TICK * self.beyond
        self.beyond += 1
        return -1, least

    def _next_stop(self, number: int, high: int) -> int:
        place = bisect_right(self.numbers, number)
        return min(self.numbers[place], high) if place < len(self.numbers) else high

    def _bounds(self, requests: int) -> tuple[int, int]:
        """The reads between the last request and the next one: the first, and the one after the last."""
        asked = self.asked
        low = asked[min(requests, len(asked)) - 1] if requests and asked else 0
        return low, asked[requests] if requests < len(asked) else self.end

    def _marks_in(self, low: int, high: int) -> Sequence[int]:
        return self.marks[bisect_left(self.marks, low) : bisect_left(self.marks, high)]
