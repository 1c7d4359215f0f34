"""What comes by a port in front of a URL is asked of that URL, and its redirects come back to the port."""

import pytest

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.fronts import Front, Fronted, Fronts, parse_front, parse_fronts


@pytest.mark.parametrize(
    ("text", "front"),
    [
        ("https://api.openai.com", Front("https://api.openai.com", "OPENAI_BASE_URL", "/v1")),
        ("https://api.openai.com/v1/", Front("https://api.openai.com/v1", "OPENAI_BASE_URL")),
        ("HTTPS://API.Anthropic.com:443/", Front("https://api.anthropic.com", "ANTHROPIC_BASE_URL")),
        ("LLM_URL=https://api.openai.com", Front("https://api.openai.com", "LLM_URL")),
        ("A=http://h:80", Front("http://h", "A")),
        ("A=https://h:8443/x=y", Front("https://h:8443/x=y", "A")),
        ("A=http://[::1]:11434", Front("http://[::1]:11434", "A")),
        ("8080=https://example.com/a", Front("https://example.com/a", port=8080)),
        ("8080=https://api.openai.com", Front("https://api.openai.com", "OPENAI_BASE_URL", "/v1", 8080)),
    ],
)
def test_a_front_is_read_as_it_is_written(text: str, front: Front) -> None:
    assert parse_front(text) == front
    again = parse_front(str(front))
    assert (again.base, again.variable, again.path, again.port) == (front.base, front.variable, front.path, front.port)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("https://example.com", "which variable"),
        ("A=", "needs an http"),
        ("A=example.com", "needs an http"),
        ("A=ftp://h", "needs an http"),
        ("A=https://", "needs an http"),
        ("A=https://h/ x", "needs an http"),
        ("A=https://h:x", "broken URL"),
        ("A=https://h:99999", "broken URL"),
        ("A=https://u:p@h", "nothing else"),
        ("A=https://h?q", "nothing else"),
        ("A=https://h#f", "nothing else"),
        ("0=https://h", "port that there is not"),
        ("70000=https://h", "port that there is not"),
        ("A-B=https://h", "cannot be the variable"),
        ("PATH=https://h", "cannot be the variable"),
        ("https_proxy=https://h", "cannot be the variable"),
        ("LD_PRELOAD=https://h", "cannot be the variable"),
        ("PYTHONPATH=https://h", "cannot be the variable"),
    ],
)
def test_what_is_no_front_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_front(text)


@pytest.mark.parametrize("texts", [("A=http://a", "A=http://b"), ("80=http://a", "80=http://b")])
def test_no_two_fronts_want_the_same(texts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="two --reverse options want"):
        parse_fronts(texts)


OPEN = Fronts({1234: Front("https://h.test/v1", "A"), 80: Front("http://b.test", "B")})


@pytest.mark.parametrize(
    ("url", "led"),
    [
        (b"http://127.0.0.1:1234/x?y=1", b"https://h.test/v1/x?y=1"),
        (b"http://localhost:1234/", b"https://h.test/v1/"),
        (b"http://[::1]:1234?q", b"https://h.test/v1/?q"),
        (b"http://127.0.0.1:1234", b"https://h.test/v1/"),
        (b"http://127.0.0.1:80/a", b"http://b.test/a"),
        (b"http://127.0.0.1:1235/", None),
        (b"https://127.0.0.1:1234/", None),
        (b"http://h.test:1234/", None),
        (b"http://127.0.0.1.h.test:1234/", None),
        (b"http://127.0.0.1/", None),
        (b"nonsense", None),
    ],
)
def test_a_request_to_a_front_is_one_to_what_is_behind_it(url: bytes, led: bytes | None) -> None:
    found = OPEN.led(url)
    assert (found and found.url) == led


def test_the_server_behind_a_front_gets_its_own_name() -> None:
    led = Fronted(b"https://h.test:8443/v1", b"/x", b"127.0.0.1:1")
    headers = ((b"hOst", b"127.0.0.1:1"), (b"a", b"127.0.0.1:1"))
    assert led.there(headers) == ((b"hOst", b"h.test:8443"), (b"a", b"127.0.0.1:1"))
    assert (led.path, led.url) == (b"/v1/x", b"https://h.test:8443/v1/x")


@pytest.mark.parametrize(
    ("base", "location", "seen"),
    [
        (b"https://h.test", b"https://h.test/x?y#z", b"http://me:1/x?y#z"),
        (b"https://h.test", b"https://H.TEST:443/x", b"http://me:1/x"),
        (b"https://h.test", b"https://h.test", b"http://me:1/"),
        (b"https://h.test", b"https://h.test?q", b"http://me:1/?q"),
        (b"https://h.test", b"//h.test/x", b"http://me:1/x"),
        (b"https://h.test", b"/x", b"/x"),
        (b"https://h.test", b"x", b"x"),
        (b"https://h.test", b"", b""),
        (b"https://h.test", b"http://h.test/x", b"http://h.test/x"),
        (b"https://h.test", b"https://h.test:8443/x", b"https://h.test:8443/x"),
        (b"https://h.test", b"https://other.test/x", b"https://other.test/x"),
        (b"https://h.test", b"https://u@h.test/x", b"https://u@h.test/x"),
        (b"https://h.test", b"https://h.test:port/", b"https://h.test:port/"),
        (b"https://h.test/v1", b"https://h.test/v1/x", b"http://me:1/x"),
        (b"https://h.test/v1", b"https://h.test/v1", b"http://me:1/"),
        (b"https://h.test/v1", b"https://h.test/v1?q", b"http://me:1/?q"),
        (b"https://h.test/v1", b"https://h.test/v10/x", b"https://h.test/v10/x"),
        (b"https://h.test/v1", b"/v1/x", b"http://me:1/x"),
        (b"https://h.test/v1", b"/login", b"https://h.test/login"),
        (b"https://h.test/v1", b"x", b"x"),
    ],
)
def test_a_redirect_to_what_is_behind_the_front_leads_to_the_front(base: bytes, location: bytes, seen: bytes) -> None:
    headers = ((b"LOCATION", location), (b"a", location))
    assert Fronted(base, b"/", b"me:1").back(headers) == ((b"LOCATION", seen), (b"a", location))


def test_the_variables_lead_to_the_fronts() -> None:
    fronts = Fronts({7: parse_front("https://api.openai.com"), 8: parse_front("8=https://h.test")})
    assert fronts.variables() == {"OPENAI_BASE_URL": "http://127.0.0.1:7/v1", "TAPEPROXY_FRONTS": "7,8"}
    assert Fronts().variables() == {}
