"""What edits add is told, with what may have been meant."""

import difftapes
import pytest
from difftapes import get, say, streamed

from tapeproxy.tapes.addedmembers import additions
from tapeproxy.tapes.edits import parse_edit

TAPE = difftapes.run(say("m", "Where?"), get("m", "a", "plain"), streamed("m", "When?", "Now."))


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ("1:$.choices[0].message.content=No", []),
        (
            "1:$.choices[0].message.contnet=No",
            ["1: $.choices[0].message.contnet was not there, and is added; did you mean $.choices[0].message.content?"],
        ),
        ("1:$.zz=1", ["1: $.zz was not there, and is added"]),
        (
            "1:$.choices[*].finish_reson=stop",
            ["1: $.choices[*].finish_reson was not there, and is added; did you mean $.choices[*].finish_reason?"],
        ),
        ("1:$.nowhere.x=1", []),  # that is an error, and told as one
        ("2:$.x=1", []),
        ("3:$.choices[0].message.contnet=No", []),  # of a stream that is an error
    ],
)
def test_what_was_not_there(edit: str, told: list[str]) -> None:
    assert list(additions(TAPE, [parse_edit(edit)])) == told
