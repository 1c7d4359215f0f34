"""What the page's server gives out, and to whom."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agentruns
import httpx2
import pytest
from difftapes import say, write
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tapeproxy.proxy.tapefile import TapeWriter
from tapeproxy.proxy.viewforks import ForkingFolder
from tapeproxy.web.app import make_app
from tapeproxy.web.assets import SCRIPTS

HOST, TOKEN = "127.0.0.1:8123", "the-token"
NAME = "one.tape.jsonl.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    agentruns.write_tape(tmp_path / "tapes" / NAME, agentruns.sample("m"))
    (tmp_path / "secret.tape.jsonl.gz").write_bytes(b"not for the page")
    return tmp_path / "tapes"


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    app = make_app(ForkingFolder(folder), token=TOKEN, hosts=frozenset({HOST}))
    with TestClient(app, base_url=f"http://{HOST}") as client:
        yield client


def get(client: TestClient, path: str, **headers: str) -> httpx2.Response:
    return client.get(path, headers={"x-tapeproxy-token": TOKEN} | headers)


def test_the_list_and_a_tape(client: TestClient) -> None:
    assert [row["name"] for row in get(client, "/api/tapes").json()] == [NAME]
    assert get(client, f"/api/tapes/{NAME}/outline").json()["rows"]["number"] == [1, 2, 3, 4]
    assert get(client, f"/api/tapes/{NAME}/ranks").json()["number"] == [1, 2, 3, 4]
    assert get(client, f"/api/tapes/{NAME}/labels?from=1&to=9").json()["number"] == [1]
    assert get(client, f"/api/tapes/{NAME}/exchanges/2").json()["exchange"]["status"] == 200
    assert get(client, f"/api/tapes/{NAME}/search?q=sky").json() == {"numbers": [2]}


def test_the_file_itself_is_given_for_the_check_in_the_browser(client: TestClient, folder: Path) -> None:
    assert get(client, f"/api/tapes/{NAME}/file").content == (folder / NAME).read_bytes()


def test_what_the_list_says_of_a_tape(client: TestClient) -> None:
    assert get(client, f"/api/tapes/{NAME}/about").json() == {
        "started_at": "2026-01-02T03:04:05.000000Z",
        "argv": ["python", "agent.py", "a b"],
        "outcome": "exit 3",
        "exchanges": 4,
        "tokens_in": 40,
        "tokens_out": 5,
        "is_fork": False,
    }


def test_a_script_that_the_browser_has_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/assets/static/app.js")
    again = client.get("/assets/static/app.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "script-src 'self'" in again.headers["content-security-policy"]


def test_an_order_without_a_length_is_cut_off(client: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(17):
            yield bytes(1 << 16)

    found = client.post(f"/api/tapes/{NAME}/plan", content=pieces(), headers={"x-tapeproxy-token": TOKEN})
    assert found.status_code == 413


def test_a_failure_of_ours_is_told_without_its_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ForkingFolder(folder)
    monkeypatch.setattr(library, "listed", lambda: {}["the reason"])
    app = make_app(library, token=TOKEN, hosts=frozenset({HOST}))
    found = get(TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False), "/api/tapes")
    assert found.status_code == 500
    assert "its terminal says more" in found.json()["error"]
    assert "the reason" not in found.text


def test_the_page_and_its_scripts_need_no_token_and_run_nothing_else(client: TestClient) -> None:
    page = client.get(f"/tape/{NAME}")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.text.count("<script") == len(SCRIPTS) + 1
    for name in (*SCRIPTS, "static/viewer.css"):
        assert client.get(f"/assets/{name}").status_code == 200
    assert NAME not in page.text


@pytest.mark.parametrize(
    ("path", "headers", "status", "says"),
    [
        ("/api/tapes", {"x-tapeproxy-token": ""}, 401, "token"),
        ("/api/tapes", {"x-tapeproxy-token": "the-tokem"}, 401, "token"),
        ("/api/forks", {"x-tapeproxy-token": ""}, 401, "token"),
        ("/", {"host": "evil.test"}, 403, "host"),
        ("/", {"host": "127.0.0.1:8124"}, 403, "host"),
        ("/api/tapes", {"origin": "http://evil.test"}, 403, "another site"),
        ("/api/tapes", {"origin": "null"}, 403, "another site"),
        ("/api/tapes", {"origin": "http://["}, 403, "another site"),
        ("/api/tapes", {"origin": f"https://{HOST}"}, 403, "another site"),
        ("/api/tapes", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403, "another site"),
        ("/api/tapes", {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, 403, "another site"),
        ("/api/tapes/other.tape.jsonl.gz/outline", {}, 404, "no such"),
        ("/api/tapes/..%2fsecret.tape.jsonl.gz/outline", {}, 404, ""),
        ("/api/tapes/%2e%2e/outline", {}, 404, ""),
        (f"/api/tapes/{NAME}/exchanges/5", {}, 404, "no such"),
        (f"/api/tapes/{NAME}/exchanges/0", {}, 404, "no such"),
        (f"/api/tapes/{NAME}/labels?from=x", {}, 400, "no number"),
        ("/api/forks/7", {}, 404, "no such"),
        ("/assets/static/../app.py", {}, 404, ""),
        ("/assets/app.py", {}, 404, ""),
    ],
)
def test_who_is_refused(client: TestClient, path: str, headers: dict[str, str], status: int, says: str) -> None:
    found = client.get(path, headers={"x-tapeproxy-token": TOKEN} | headers)
    assert found.status_code == status
    assert says in found.text


def test_a_link_from_another_site_opens_the_page(client: TestClient) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get(f"/tape/{NAME}", headers=headers).status_code == 200


def test_a_link_that_leads_out_of_the_folder_is_not_listed(client: TestClient, folder: Path) -> None:
    (folder / "linked.tape.jsonl.gz").symlink_to(folder.parent / "secret.tape.jsonl.gz")
    assert [row["name"] for row in get(client, "/api/tapes").json()] == [NAME]
    assert get(client, "/api/tapes/linked.tape.jsonl.gz/outline").status_code == 404


def test_a_file_that_is_no_tape_is_an_error_with_its_reason(client: TestClient, folder: Path) -> None:
    (folder / "bad.tape.jsonl.gz").write_bytes(b"no tape")
    found = get(client, "/api/tapes/bad.tape.jsonl.gz/outline")
    assert found.status_code == 422
    assert "this is not a tape" in found.json()["error"]


def post(client: TestClient, path: str, order: Any, **headers: str) -> httpx2.Response:
    return client.post(path, json=order, headers={"x-tapeproxy-token": TOKEN} | headers)


@pytest.mark.parametrize(
    ("order", "status", "says"),
    [
        ({"options": [["--at", "2"], ["--status", "500"]]}, 200, '"mutated":[2]'),
        ({"options": [["--at", "9"], ["--status", "500"]]}, 422, "9"),
        ({"options": [["--output", "/etc/passwd"]]}, 422, "may not use"),
        ({"options": [["--guard", "none"]]}, 422, "may not use"),
        ({"options": [["--body", "/etc/passwd"]]}, 422, "may not use"),
        ({"options": [["--env", "A=1"]]}, 422, "may not use"),
        ({"options": [["--text", "1::\0"]]}, 422, "cannot be started"),
        ({"options": [["--text", "1::" + 200_000 * "a"]]}, 422, "cannot be started"),
        ({"options": "x"}, 400, "is ordered as"),
        ([1], 400, "is ordered as"),
    ],
)
def test_a_fork_is_planned(client: TestClient, order: Any, status: int, says: str) -> None:
    found = post(client, f"/api/tapes/{NAME}/plan", order)
    assert found.status_code == status, found.text
    assert says in found.text.replace(" ", "") or says in found.text


@pytest.mark.parametrize("path", [f"/api/tapes/{NAME}/fork", f"/api/tapes/{NAME}/plan", "/api/forks/1/stop"])
def test_nothing_changes_without_the_token_or_by_get(client: TestClient, path: str) -> None:
    order = {"options": [["--at", "1"]]}
    assert post(client, path, order, **{"x-tapeproxy-token": "no"}).status_code == 401
    assert get(client, path).status_code == 405
    assert post(client, path, order, origin="http://evil.test").status_code == 403


def test_a_page_that_follows_gets_the_whole_tape_first(client: TestClient) -> None:
    with client.websocket_connect(f"/api/tapes/{NAME}/live", headers={"host": HOST}) as line:
        line.send_json({"token": TOKEN})
        news = line.receive_json()
        assert news["whole"]
        assert news["outline"]["rows"]["number"] == [1, 2, 3, 4]
        assert not news["outline"]["tape"]["recording"]
        assert line.receive_json()["labels"]["number"] == [1]
        assert line.receive_json()["at"]
        with pytest.raises(WebSocketDisconnect) as ended:
            line.receive_json()
        assert ended.value.code == 1000


def test_a_page_that_comes_back_gets_what_it_has_not(client: TestClient, folder: Path) -> None:
    def follow(at: str) -> tuple[list[int], bool, str]:
        with client.websocket_connect("/api/tapes/growing.tape.jsonl.gz/live", headers={"host": HOST}) as line:
            line.send_json({"token": TOKEN, "at": at})
            numbers, whole = list[int](), False
            while "at" not in (news := line.receive_json()):
                numbers += news.get("outline", {}).get("rows", {}).get("number", [])
                whole |= news.get("whole", False)
            return numbers, whole, news["at"]

    writer = TapeWriter(folder / "growing.tape.jsonl.gz", agentruns.HEAD)
    for record in agentruns.sample("m"):
        writer.add(record)
    writer.commit()
    begun = get(client, "/api/tapes/growing.tape.jsonl.gz/outline").json()["tape"]["at"]
    assert follow(begun) == ([], False, begun)
    for record in agentruns.exchange(len(agentruns.sample("m")) + 1, "http://later.test/path"):
        writer.add(record)
    writer.commit()
    numbers, whole, now = follow(begun)
    assert (numbers, whole, now != begun) == ([5], False, True)
    assert follow(now) == ([], False, now)
    for other in ("", "x", f"{now}x", "other:" + now.partition(":")[2], now.partition(":")[0] + ":"):
        assert follow(other) == ([1, 2, 3, 4, 5], True, now)
    writer.seal(trace="", outcome="exited")
    numbers, whole, _ = follow(now)
    assert (numbers, whole) == ([1, 2, 3, 4, 5], True)


@pytest.mark.parametrize(
    ("hello", "name", "code"),
    [({"token": "no"}, NAME, 4401), ([], NAME, 4401), ({"token": TOKEN}, "other.tape.jsonl.gz", 4404)],
)
def test_who_may_not_follow(client: TestClient, hello: Any, name: str, code: int) -> None:
    with client.websocket_connect(f"/api/tapes/{name}/live", headers={"host": HOST}) as line:
        line.send_json(hello)
        assert line.receive_json()["error"]
        with pytest.raises(WebSocketDisconnect) as ended:
            line.receive_json()
        assert ended.value.code == code


def test_another_site_may_not_follow(client: TestClient) -> None:
    headers = {"host": HOST, "origin": "http://evil.test"}
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(f"/api/tapes/{NAME}/live", headers=headers):
        pass


def test_where_words_come_from(client: TestClient, folder: Path) -> None:
    asks = (say("m", "Hello?", answer="words that come again"), say("m", "Hello?", "words that come again"))
    write(folder / "two.tape.jsonl.gz", *asks)
    at = "/api/tapes/two.tape.jsonl.gz/why"
    (text,) = get(client, f"{at}?event=2").json()["texts"]
    assert text["spans"][0]["source"]["event"] == 1
    (text,) = get(client, f"{at}?event=2&path=$.messages[1].content&start=6&end=21").json()["texts"]
    assert text["spans"][0]["text"] == "that come again"
    (text,) = get(client, f"{at}?event=2&text=come%20again").json()["texts"]
    assert [span["text"] for span in text["spans"]] == ["come again"]
    for wrong in ("event=9", "event=2&path=$.nothing", "event=2&text=nowhere"):
        assert get(client, f"{at}?{wrong}").status_code == 422
    assert client.get(f"{at}?event=2").status_code == 401
