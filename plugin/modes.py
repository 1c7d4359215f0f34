"""What a mode makes of a test: replay, record or update. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, get_args

from tapeproxy.tapes.errors import UsageError

type Mode = Literal["none", "once", "new", "update", "all", "rewrite", "verify"]
MODES: tuple[Mode, ...] = get_args(Mode.__value__)
type Deed = Literal["replay", "record", "update"]
"""`update`: what is on the tape is answered from it, and what isn't is recorded."""

_AGE = re.compile(r"(\d+)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def default_mode(environment: Mapping[str, str]) -> Mode:
    """Nothing is recorded in CI."""
    return "none" if environment.get("CI", "").lower() not in ("", "0", "false", "no") else "once"


def frozen(mode: Mode) -> Mode:
    """The mode for a test whose tapes are never recorded anew: they hold a run that can't be had again."""
    return mode if mode == "verify" else "none"


def deed_of(mode: Mode, *, exists: bool, expired: bool, recorder: bool) -> Deed:
    """What becomes of a test. An old tape is not updated but recorded anew, where that is what its age asks for.

    `recorder`: whether there is one. Where there is none, nobody has asked to record who did not name a mode.
    """
    if mode in ("all", "rewrite"):
        return "record"
    if mode in ("none", "verify"):
        return "replay"
    if mode == "once" and not recorder:
        return "replay"
    if not exists or (expired and mode != "update"):
        return "record"
    return "replay" if mode == "once" else "update"


def parse_age(text: str) -> timedelta:
    """`30d`, `12h`: a number of seconds, minutes, hours, days or weeks. Raises UsageError."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not an age", fix="write it as 30d, 12h or 8w")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def is_expired(started_at: str, most: timedelta | None, now: datetime) -> bool:
    """Whether a tape that was begun then is older than it may be; one without a time is not."""
    try:
        begun = datetime.fromisoformat(started_at)
    except ValueError:
        return False
    return most is not None and begun.tzinfo is not None and now - begun > most
