"""Files of other tools become tapes: whole, redacted, and honest about what the source does not tell."""

import json
import re
from pathlib import Path

import pytest
from cassettes import FOLDER, load_exchanges

from tapeproxy.proxy.importing import ImportSettings, import_file
from tapeproxy.proxy.tapefile import load
from tapeproxy.tapes.codings import decode
from tapeproxy.tapes.errors import TapeExistsError, UsageError
from tapeproxy.tapes.imports.nodes import ForeignFormatError

SECRET = "sk-" + "proj-AbCdEfGhIj0123456789KlMnOpQrStUv"
ENTRY = """
- request: {method: POST, uri: 'https://api.example.com/v1', body: '{"n": %s}', headers: {Authorization: [Bearer %s]}}
  response: {status: {code: 200, message: OK}, body: {string: '%s'}, headers: {}}
"""
NAMES = [path.name for path in sorted(FOLDER.glob("*.*"))] or ["any"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


def settings(source: Path, text: str | None = None, **more: object) -> ImportSettings:
    if text is not None:
        source.write_text(text)
    fields: dict[str, object] = {"output": source.parent / "t.tape.jsonl.gz", "environment": {"A_KEY": SECRET}}
    return ImportSettings(source=source, **(fields | more))  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_of_the_world_is_imported(name: str, tmp_path: Path) -> None:
    if not (FOLDER / name).is_file():
        pytest.skip("the recordings are not on this machine (a folder shared/cases beside the checkout)")
    done = import_file(settings(FOLDER / name, output=tmp_path / "t.tape.jsonl.gz"))
    tape, ending = load(done.path)
    assert ending.sealed
    assert len(tape.exchanges) == done.exchanges > 0
    assert "lanes" in done.absent
    assert tape.head.imported is not None
    assert tape.head.imported["file"] == name
    if name.endswith((".yaml", ".har")):
        for was, now in zip(load_exchanges(name), tape.exchanges, strict=True):
            assert was.request.method.upper() == now.request.method
            assert was.response is not None
            assert now.response is not None
            assert now.response.status == was.response.status
            plain = decode(was.response_body, was.response.headers).data
            found = decode(now.response_body, now.response.headers)
            assert found.whole
            assert masked(found.data) == masked(plain)


def masked(body: bytes) -> object:
    """The body as a value: what `parsed_body` holds has no spelling, and tokens of redaction are none of its own."""
    try:
        return json.loads(body)
    except ValueError:
        return re.sub(rb"tpx[a-z0-9]+", b"", body)[:40]


def test_secrets_of_a_cassette_are_on_no_tape(tmp_path: Path) -> None:
    done = import_file(settings(tmp_path / "c.yaml", "interactions:" + ENTRY % (1, SECRET, f"you said {SECRET}")))
    tape, _ = load(done.path)
    (exchange,) = tape.exchanges
    assert SECRET.encode() not in exchange.response_body
    assert len(exchange.response_body) == len(f"you said {SECRET}")
    assert SECRET not in str(exchange.request.headers)


def test_an_entry_that_cannot_be_imported(tmp_path: Path) -> None:
    text = (
        "interactions:" + ENTRY % (1, "x", "a") + "\n- {request: {method: GET}, response: {}}\n" + ENTRY % (2, "x", "b")
    )
    with pytest.raises(ForeignFormatError, match=r"c\.yaml: interactions\[1\]\.response: there is no .status."):
        import_file(settings(tmp_path / "c.yaml", text))
    assert not (tmp_path / "t.tape.jsonl.gz").exists()
    done = import_file(settings(tmp_path / "c.yaml", text, keep_going=True))
    assert done.exchanges == 2
    assert [error.place for error in done.refused] == ["interactions[1].response"]
    with pytest.raises(TapeExistsError):
        import_file(settings(tmp_path / "c.yaml", text, keep_going=True))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: !!python/object/apply:os.system ['touch hacked']", "no YAML that can be read safely"),
        ("a: !!python/name:os.system", "no YAML that can be read safely"),
        ("a: [1, 2", "no YAML that can be read safely"),
        ("a: *nothing", "no YAML that can be read safely"),
        ('{"log": ', "no JSON"),
        ("", "no recording of a tool"),
        ("a: &a [*a]", "without end"),
        ("interactions: []", "nothing in it"),
        ("[" * 100_000, "too deeply"),
        ("- " * 100_000, "too deeply"),
    ],
)
def test_a_file_that_is_no_recording(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ForeignFormatError, match=says):
        import_file(settings(tmp_path / "c.yaml", text))
    assert not Path("hacked").exists()


def test_billions_of_values_in_few_lines(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(ForeignFormatError, match="more than"):
        import_file(settings(tmp_path / "c.yaml", "\n".join([*lines, "interactions: [*a11]"])))


def test_texts_that_look_like_numbers_stay_texts(tmp_path: Path) -> None:
    text = (
        "interactions:\n- request: {method: GET, uri: 'http://h/', body: 12e3}\n"
        "  response: {status: 200, body: {string: 0o14}}\n"
    )
    tape, _ = load(import_file(settings(tmp_path / "c.yaml", text)).path)
    assert (tape.exchanges[0].request.body, tape.exchanges[0].response_body) == (b"12e3", b"0o14")


def test_a_folder_of_wiremock_reads_bodies_of_its_own_files_only(tmp_path: Path) -> None:
    folder = tmp_path / "stubs"
    (folder / "mappings").mkdir(parents=True)
    (folder / "__files").mkdir()
    (folder / "__files" / "b.json").write_text("{}")
    (tmp_path / "secret").write_text("x")
    stub = {"request": {"method": "GET", "url": "/a"}, "response": {"status": 200, "bodyFileName": "b.json"}}
    (folder / "mappings" / "a.json").write_text(json.dumps(stub))
    done = import_file(settings(folder, base="https://h.example"))
    assert load(done.path)[0].exchanges[0].response_body == b"{}"
    stub["response"]["bodyFileName"] = "../../secret"  # type: ignore[index]  # a dict
    (folder / "mappings" / "a.json").write_text(json.dumps(stub))
    with pytest.raises(ForeignFormatError, match="is not in __files"):
        import_file(settings(folder, base="https://h.example", force=True))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: no such file"):
        import_file(settings(tmp_path / "none.yaml"))


def test_a_file_of_flows_that_is_cut_off(tmp_path: Path) -> None:
    (source,) = FOLDER.glob("*.mitm") if FOLDER.is_dir() else (pytest.skip("there are no recordings on this machine"),)
    whole = source.read_bytes()
    (tmp_path / "cut.mitm").write_bytes(whole[: len(whole) - 10])
    with pytest.raises(ForeignFormatError, match="is cut off"):
        import_file(settings(tmp_path / "cut.mitm"))
    done = import_file(settings(tmp_path / "cut.mitm", keep_going=True))
    assert done.exchanges == 1
