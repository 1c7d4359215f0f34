"""What a test says of its tape: by its marker, `tape_config` and the command line. Pure."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from tapeproxy.plugin.modes import Mode
from tapeproxy.proxy.inprocess.words import Matching, OnDrift, check_words, rules_of
from tapeproxy.tapes.errors import UsageError

_OURS = ("mode", "accept", "shared")
"""Options that the plugin sets, and no marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeOptions:
    """`hosts` and `upstream_ca` are for recording alone.

    `accept`: an updated tape takes the old one's place at once. `shared`: other tests have it, too, and may not
    run now, so that an update leaves on it what nobody asks for. `frozen`: `mode` never records it.
    """

    mode: Mode
    rules: Iterable[str] = ()
    allow: Iterable[str] = ()
    block_network: bool = True
    match: Matching = "lane"
    on_drift: OnDrift = "fail"
    max_age: timedelta | None = None
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    upstream_ca: str | None = None
    accept: bool = False
    shared: bool = False
    frozen: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError for what would let pass what it should fail, or fail where nobody looks for it."""
        check_words(match=self.match, on_drift=self.on_drift)
        rules_of(self.rules)


def _check_names(given: Iterable[str], test: str) -> None:
    known = ["scope", *(one.name for one in fields(TapeOptions) if one.name not in _OURS)]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            fix = f"perhaps {near[0]} is meant" if near else f"there are {', '.join(known)}"
            raise UsageError(f"the marker tape and tape_config have no {name!r}", where=test, fix=fix)


def marked(config: Mapping[str, Any], marker: Mapping[str, Any], test: str) -> dict[str, Any]:
    """The options of `tape_config` and of a test's marker, which goes first.

    Raises UsageError for one that there is not, and says which may be meant.
    """
    _check_names((*config, *marker), test)
    return {**config, **marker}
