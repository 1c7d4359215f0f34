"""No secret in an edit comes into a child's head or onto a terminal; what is none stays."""

import pytest

from tapeproxy.tapes.editlines import line_of, redacted
from tapeproxy.tapes.edits import edit_document, parse_edit
from tapeproxy.tapes.redaction import Redactor

KNOWN = "env-s3cret/of+the run=7Q"
SHAPED = "sk-proj-AbCdEf0123456789xyzXYZ"
REDACTOR = Redactor(bytes(range(32)), [KNOWN])


@pytest.mark.parametrize("secret", [KNOWN, SHAPED])
@pytest.mark.parametrize(
    "edit",
    [
        "$.a=the {}",
        '$.a={{"b": ["{}"]}}',
        "3:$.a+={}",
        "text Say {}",
        "body @{}",
        'body @{{"a": "{}"}}',
        "header x-a: {}",
        "header authorization: Bearer {}",
        "system Use {}",
        "model {}",
        "request-set $.a={}",
        "env A={}",
        'value m#1="{}"',
    ],
)
def test_a_secret_in_an_edit(edit: str, secret: str) -> None:
    document = edit_document(parse_edit(edit.format(secret)))
    clean = redacted(document, REDACTOR)
    assert secret in str(document)
    assert secret not in str(clean) and secret not in line_of(clean)
    assert clean["what"] == document["what"] and clean.keys() == document.keys()


@pytest.mark.parametrize(
    ("edit", "hidden"),
    [
        ("$.client_secret=hunter2-is-my-password", True),
        ("request-set $.a.password=hunter2-is-my-password", True),
        ("env DB_PASSWORD=hunter2", True),
        ("header x-api-key: hunter2-is-my-password", True),
        ("$.content=hunter2-is-my-password", False),
        ("env COLOUR=hunter2", False),
    ],
)
def test_a_value_goes_by_the_name_of_its_field(edit: str, hidden: bool) -> None:
    clean = redacted(edit_document(parse_edit(edit)), REDACTOR)
    assert ("hunter2" not in str(clean)) is hidden


def test_what_is_no_secret_stays() -> None:
    for edit in ("$.a=12345678901234567890123", "unset A", f"lane-seed m={'ab' * 32}", "clock +1h", "delete $.a"):
        document = edit_document(parse_edit(edit))
        assert redacted(document, REDACTOR) == document
