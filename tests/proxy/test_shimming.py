"""The protocol between launcher and shim: variables, readings, the pinned TMPDIR."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from served import exchange, tape_of

from tapeproxy.proxy.shimming import (
    ShimSettings,
    epoch_ns,
    hash_seed_for,
    make_tmpdir,
    new_seed,
    node_option,
    shim_environment,
    write_reads,
)
from tapeproxy.shim import INJECT, NODE
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.records import Clock, LaneEnd

SETTINGS = ShimSettings(
    mode="record", seed="ab" * 32, hash_seed="7", tmpdir="/t", origin_ns=5, sidecar=Path("/s"), proxy="127.0.0.1:1"
)


def test_our_folder_comes_first_and_the_user_s_own_path_stays() -> None:
    assert (INJECT / "sitecustomize.py").exists()
    assert shim_environment({}, SETTINGS)["PYTHONPATH"] == str(INJECT)
    assert shim_environment({"PYTHONPATH": "a:b"}, SETTINGS)["PYTHONPATH"] == f"{INJECT}{os.pathsep}a:b"


def test_a_node_loads_the_shim_before_what_the_user_has_it_load() -> None:
    told = replace(SETTINGS, node=True)
    assert NODE.exists()
    assert shim_environment({}, told)["NODE_OPTIONS"] == f'--require="{NODE}"'
    assert shim_environment({"NODE_OPTIONS": "-r x"}, told)["NODE_OPTIONS"] == f'--require="{NODE}" -r x'
    assert "NODE_OPTIONS" not in shim_environment({"NODE_OPTIONS": "-r x"}, SETTINGS)
    assert node_option(Path('/a "b" \\ c')) == '--require="/a \\"b\\" \\\\ c"'


def test_a_replay_is_told_where_its_readings_are() -> None:
    assert not {"TAPEPROXY_READS", "TAPEPROXY_THREADS"} & shim_environment({}, SETTINGS).keys()
    replay = ShimSettings(
        mode="replay",
        seed="ab" * 32,
        hash_seed="7",
        tmpdir="/t",
        origin_ns=5,
        sidecar=Path("/s"),
        proxy="127.0.0.1:1",
        reads=Path("/r"),
        strict=True,
        allow=("a:1", "b:2"),
    )
    out = shim_environment({}, replay)
    assert (out["TAPEPROXY_READS"], out["TAPEPROXY_STRICT"], out["TAPEPROXY_ALLOW"]) == ("/r", "1", "a:1,b:2")


@pytest.mark.parametrize(
    ("given", "kept"), [("0", True), ("123", True), ("random", False), ("", False), ("-1", False), (str(2**32), False)]
)
def test_a_number_that_the_user_set_stays_the_hash_seed(given: str, kept: bool) -> None:
    seed = hash_seed_for({"PYTHONHASHSEED": given})
    assert (seed == given) is kept
    assert 0 <= int(seed) < 2**32


def test_seeds_are_fresh() -> None:
    assert len({new_seed() for _ in range(10)}) == 10
    assert len(bytes.fromhex(new_seed())) == 32


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.000001Z", 1_000_001_000),
        ("2026-11-29T20:11:04.775760Z", 1_795_983_064_775_760_000),
    ],
)
def test_a_start_is_read_to_the_microsecond(text: str, ns: int) -> None:
    assert epoch_ns(text) == ns


def test_readings_are_absolute_again(tmp_path: Path) -> None:
    tape = tape_of([])
    tape.clocks.append(Clock(t=0, lane="m", n=0, ns=-5))
    tape.lane_ends += [LaneEnd(t=0, lane="m", reads=3), LaneEnd(t=0, lane="m", reads=0)]
    write_reads(tape, tmp_path / "reads")
    lines = [json.loads(line) for line in (tmp_path / "reads").read_text().splitlines()]
    assert lines == [{"lane": "m", "n": 0, "ns": epoch_ns(tape.head.started_at) - 5}, {"lane": "m", "reads": 3}]
    assert (tmp_path / "reads").stat().st_mode & 0o077 == 0


def test_the_taped_tmpdir_is_made_again_and_must_be_ours(tmp_path: Path) -> None:
    wanted = tmp_path / "run"
    assert make_tmpdir(str(wanted)) == str(wanted)
    assert wanted.stat().st_mode & 0o777 == 0o700
    assert make_tmpdir(str(wanted)) == str(wanted)
    wanted.chmod(0o777)
    with pytest.raises(UsageError, match="not a private directory"):
        make_tmpdir(str(wanted))
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="not a private directory"):
        make_tmpdir(str(tmp_path / "link"))
    with pytest.raises(UsageError, match="cannot be made"):
        make_tmpdir(str(tmp_path / "no" / "parent"))


@pytest.mark.parametrize(("rules", "told"), [({"clock": 2}, [{"lane": "m", "asked": [3, 9]}]), ({}, [])])
def test_where_lanes_asked_is_told_of_tapes_that_know_sleeps(
    rules: dict[str, int], told: list[object], tmp_path: Path
) -> None:
    places = [("m", 1, 9), ("m", 0, 3), ("m", 3, 20), (None, None, None)]
    exchanges = [exchange() for _ in places]
    for one, (lane, n, reads) in zip(exchanges, places, strict=True):
        one.request = replace(one.request, lane=lane, n=n, reads=reads)
    tape = tape_of(exchanges)
    tape.head = replace(tape.head, rules=rules)
    tape.clocks.append(Clock(t=0, lane="m", n=0, ns=0, slept=True))
    write_reads(tape, tmp_path / "reads")
    clock, *asked = [json.loads(line) for line in (tmp_path / "reads").read_text().splitlines()]
    assert clock["slept"] is True
    assert asked == told
