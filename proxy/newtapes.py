"""A new tape and what the shim is told of it. Knows what a head says of the run and the machine."""

import dataclasses
import platform
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import tapeproxy
from tapeproxy.proxy.followed import FollowedTape
from tapeproxy.proxy.origin import origin_mark
from tapeproxy.proxy.recorded import RecordSettings, Within
from tapeproxy.proxy.shimming import (
    IoSettings,
    ShimSettings,
    epoch_ns,
    hash_seed_for,
    make_tmpdir,
    new_seed,
    shim_environment,
)
from tapeproxy.proxy.sidecar import make_folder
from tapeproxy.proxy.tapefile import started_at
from tapeproxy.tapes.lanes import APART_RULES, EDGE_RULES, NODE_RULES, edge_rules, has_node, keeps_apart
from tapeproxy.tapes.likes import WINDOW
from tapeproxy.tapes.positions import CLOCK_RULES, WITHIN_RULES
from tapeproxy.tapes.reading import VERSION
from tapeproxy.tapes.records import Head, Json
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.rules import Rule
from tapeproxy.tapes.secretvars import secret_names

if TYPE_CHECKING:
    pass


def open_tape(
    settings: RecordSettings, tape: FollowedTape, proxy: str, key: bytes, redactor: Redactor
) -> dict[str, str]:
    """Create the tape, and what the shim needs; returns the shim's variables (none without a shim).

    `proxy` is the wire's HOST:PORT. Raises TapeWriteError.
    """
    head = _head(settings, redactor, key)
    if settings.within is not None:
        _open_within(settings, settings.within, tape, head)
        return {}
    if not settings.shim:
        tape.create(settings, head)
        return {}
    epoch = epoch_ns(head.started_at)
    head = dataclasses.replace(
        head,
        seed=new_seed(),
        origin=time.time_ns() - time.monotonic_ns() - epoch,
        hash_seed=hash_seed_for(settings.environment),
        tmpdir=make_tmpdir(),
        io=settings.io,
        rules=head.rules | {"clock": CLOCK_RULES, "edges": EDGE_RULES, "node": NODE_RULES, "apart": APART_RULES},
        threads=settings.threads,
    )
    assert head.seed and head.hash_seed and head.tmpdir and head.origin is not None
    try:
        folder = _create(settings, tape, head)
    except BaseException:
        Path(head.tmpdir).rmdir()
        raise
    shim = ShimSettings(
        mode="record",
        seed=head.seed,
        hash_seed=head.hash_seed,
        tmpdir=head.tmpdir,
        origin_ns=head.origin + epoch,
        sidecar=folder.absolute(),
        proxy=proxy,
        io=IoSettings(mode="record", base=settings.cwd) if settings.io else None,
        threads="1" if settings.threads else "",
        edges=EDGE_RULES,
        node=True,
        apart=True,
    )
    return shim_environment(settings.environment, shim)


def _open_within(settings: RecordSettings, within: Within, tape: FollowedTape, head: Head) -> None:
    epoch = epoch_ns(head.started_at)
    rules = head.rules | {"clock": CLOCK_RULES, "within": WITHIN_RULES}
    tape.create(settings, dataclasses.replace(head, seed=within.seed, origin=within.origin_ns - epoch, rules=rules))
    tape.hear(within.events, epoch)


def open_child(
    settings: RecordSettings, tape: FollowedTape, key: bytes, redactor: Redactor, parent: Head, told: Json
) -> Path | None:
    """Create the tape of a fork, which goes on with its parent's seed, clocks' origin and TMPDIR.

    `told`: what its head says of the fork. Returns the folder for the sidecar files, None without a shim. Raises
    TapeWriteError.
    """
    head = dataclasses.replace(_head(settings, redactor, key), **told)
    if settings.within is not None:
        _open_within(settings, settings.within, tape, head)
        return None
    if not settings.shim:
        tape.create(settings, head)
        return None
    # What its parent's lanes and flows were called, its own are.
    inherited = {"edges": edge_rules(parent) or EDGE_RULES}
    if has_node(parent):
        inherited["node"] = NODE_RULES
    if keeps_apart(parent):
        inherited["apart"] = APART_RULES
    origin = epoch_ns(parent.started_at) + (parent.origin or 0) - epoch_ns(head.started_at)
    head = dataclasses.replace(
        head,
        seed=parent.seed or new_seed(),
        origin=origin,
        hash_seed=parent.hash_seed or hash_seed_for(settings.environment),
        tmpdir=parent.tmpdir,
        io=settings.io,
        rules=head.rules | {"clock": CLOCK_RULES} | inherited,
    )
    return _create(settings, tape, head)


def _create(settings: RecordSettings, tape: FollowedTape, head: Head) -> Path:
    """Create the tape and the folder for the sidecar files, and follow those. Raises TapeWriteError."""
    assert head.seed and head.tmpdir
    tape.create(settings, head)
    try:
        folder = make_folder(settings.tape, head.seed)
    except BaseException:
        tape.writer.discard()
        raise
    tape.follow(folder, epoch_ns(head.started_at), head.tmpdir, head.seed)
    return folder


def _head(settings: RecordSettings, redactor: Redactor, key: bytes) -> Head:
    environment = settings.environment
    argv = redactor.argv(settings.argv)
    begun = started_at()
    return Head(
        must=("like",),
        window=WINDOW,
        by=f"tapeproxy {tapeproxy.__version__}",
        started_at=begun,
        argv=argv,
        cwd=redactor.text(settings.cwd),
        host=origin_mark(key, socket.gethostname(), argv, begun),
        platform=f"{sys.platform}-{platform.machine()}",
        python=platform.python_version(),
        tz=environment.get("TZ"),
        lang=environment.get("LC_ALL") or environment.get("LANG"),
        secrets=secret_names(environment),
        java=settings.java,
        led=settings.outside is not None,
        no_tape=tuple(map(redactor.text, settings.no_tape)),
        reverse=tuple(redactor.text(str(front)) for front in settings.fronts),
        rules={"matching": VERSION} | settings.redaction.to_json() | _rules(settings.rules, redactor),
    )


def _rules(rules: tuple[Rule, ...], redactor: Redactor) -> Json:
    return {"user": [redactor.text(str(rule)) for rule in rules]} if rules else {}
