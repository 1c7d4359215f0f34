"""Hosts sent elsewhere: what rules mean, and that only the place changes."""

from collections.abc import Callable

import httpx
import pytest
from authority import Authority
from origin import Call, Origin
from recording import Recording

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.hostmap import HostMap, Target, parse_map
from tapeproxy.tapes.errors import UsageError

type Make = Callable[..., Recording]


async def hello(call: Call) -> None:
    await call.reply(b"hello")


@pytest.mark.parametrize(
    ("rule", "host", "url"),
    [
        ("api.openai.com=https://127.0.0.1:8443", "api.openai.com", "https://127.0.0.1:8443"),
        (" API.OpenAI.com = http://localhost:1/v2 ", "api.openai.com", "http://localhost:1/v2"),
        ("api.openai.com:8080=https://[::1]", "api.openai.com:8080", "https://[::1]"),
        ("::1=http://a/b=c", "::1", "http://a/b=c"),
    ],
)
def test_a_rule(rule: str, host: str, url: str) -> None:
    assert parse_map([rule]) == {host: url}


@pytest.mark.parametrize(
    "rules",
    [
        ["api.openai.com"],
        ["=https://a"],
        ["a="],
        ["https://api.openai.com=https://127.0.0.1"],
        ["a/b=https://127.0.0.1"],
        ["a=127.0.0.1:8443"],
        ["a=ftp://b"],
        ["a=https://"],
        ["a=https://b:port"],
        ["a=https://b:99999"],
        ["a=https://b?c"],
        ["a=https://user:pass@b"],
        ["a=https://[b"],
        ["a=https://b", "A=https://c"],
    ],
)
def test_a_broken_rule_is_named(rules: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_map(rules)
    assert caught.value.where == rules[-1] and caught.value.fix


def test_the_more_exact_rule_wins() -> None:
    hosts = HostMap({"a": "http://x/", "a:8080": "https://y:1/pre/", "::1": "http://z"}, Failures())
    assert hosts.find("A", 80) == Target("http", "x", 80, b"")
    assert hosts.find("a", 8080) == Target("https", "y", 1, b"/pre")
    assert hosts.find("::1", 443) == Target("http", "z", 80, b"")
    assert hosts.find("b", 80) is None


def test_a_mapped_host_is_reached_over_tls_and_taped_under_its_own_name(record: Make, authority: Authority) -> None:
    with (
        Origin(hello, tls=authority.serving("127.0.0.1")) as origin,
        record(hosts={"api.openai.com": f"{origin.url}/fake/"}) as recording,
        recording.client() as client,
    ):
        response = client.post("https://api.openai.com/v1/chat?x=%20", content=b"body")
        assert response.content == b"hello"
    (seen,) = origin.requests
    assert seen.target == "/fake/v1/chat?x=%20"
    assert seen.header("Host") == "api.openai.com"
    request = recording.exchange().request
    assert request.url == b"https://api.openai.com/v1/chat?x=%20"
    assert (b"Host", b"api.openai.com") in request.headers


def test_the_mapped_place_has_to_prove_its_own_name(record: Make, authority: Authority) -> None:
    """A certificate for the original host is not asked for, and does not help."""
    with (
        Origin(hello, tls=authority.serving("api.openai.com")) as origin,
        record(hosts={"api.openai.com": origin.url}) as recording,
        recording.client() as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.get("https://api.openai.com/")
    end = recording.exchange().end
    assert end is not None and end.how == "connect-error" and "IP address mismatch" in (end.error or "")


def test_the_scheme_can_change_and_other_hosts_are_left_alone(record: Make) -> None:
    with (
        Origin(hello) as origin,
        record(hosts={"api.openai.com:443": origin.url}) as recording,
        recording.client() as client,
    ):
        assert client.get("https://api.openai.com/mapped").content == b"hello"
        assert client.get(f"{origin.url}/direct").content == b"hello"
    assert [seen.target for seen in origin.requests] == ["/mapped", "/direct"]
    urls = [exchange.request.url for exchange in recording.tape().exchanges]
    assert urls == [b"https://api.openai.com/mapped", f"{origin.url}/direct".encode()]
