"""What a shim tells by the wire's port goes on the tape by the client's request, whichever comes first."""

from tapeproxy.proxy.servedrequests import ServedRequests


def line(what: str, on: str) -> dict[str, object]:
    return {"k": "edge", "what": what, "on": on}


def test_the_wire_knows_first() -> None:
    served = ServedRequests()
    assert served.learn(40000, 0, "m#3") == []
    assert served.resolve(line("serve", "@40000#0")) == line("serve", "m#3")
    assert served.resolve(line("answer", "@40000#0")) == line("answer", "m#3")


def test_the_shim_tells_first() -> None:
    served = ServedRequests()
    assert served.resolve(line("serve", "@40000#1")) is None
    assert served.resolve(line("answer", "@40000#1")) is None
    assert served.learn(40000, 0, "m#3") == []
    assert served.learn(40000, 1, "m#4") == [line("serve", "m#4"), line("answer", "m#4")]
    assert served.learn(40000, 1, "m#4") == []


def test_other_edges_and_other_tokens_stay_as_they_are() -> None:
    served = ServedRequests()
    served.learn(1, 0, "m#0")
    for other in (line("get", "@1#0"), line("serve", "m#0"), {"k": "clock"}):
        assert served.resolve(other) == other


def test_the_last_use_of_a_port_counts_and_old_ones_are_forgotten() -> None:
    served = ServedRequests()
    served.learn(1, 0, "m#0")
    served.learn(1, 0, "m#1")
    assert served.resolve(line("serve", "@1#0")) == line("serve", "m#1")
    for port in range(2, 10_000):
        served.learn(port, 0, "m#2")
    assert served.resolve(line("serve", "@2#0")) is None
    assert len(served._known) < 5_000
