"""YAML read safely: values only, as PyYAML, Psych and go-yaml write them. Imported when a YAML file is met."""

import io
import re
from collections.abc import Callable

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode

from tapeproxy.tapes.imports.nodes import ForeignFormatError

_TEXTS = ("tag:yaml.org,2002:python/unicode", "tag:yaml.org,2002:python/str")


class _Values(SafeConstructor):
    """Makes values of nodes. Tags that name a class or a function have no constructor here, and are errors."""

    def construct_text(self, node: ScalarNode) -> object:
        return self.construct_scalar(node)

    def construct_number(self, node: ScalarNode) -> object:
        # To those who write YAML 1.1, a number has a dot: 12e3 is a text, and they don't quote it.
        text = str(self.construct_scalar(node))
        return text if re.fullmatch(r"[-+]?[0-9_]+[eE][-+]?[0-9]+", text) else super().construct_yaml_float(node)


for _tag in _TEXTS:
    _Values.add_constructor(_tag, _Values.construct_text)
_Values.add_constructor("tag:yaml.org,2002:float", _Values.construct_number)
_Values.add_constructor("!binary", _Values.construct_yaml_binary)


class _Watched(io.BytesIO):
    """A document that is read piece by piece: the parser takes its time between them."""

    def __init__(self, data: bytes, tell: Callable[[int], object]) -> None:
        super().__init__(data)
        self._tell = tell

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self._tell(len(piece))
        return piece


def parse_yaml(data: bytes, tell: Callable[[int], object] = lambda _: None) -> object:
    """The value of a YAML document; `tell` is called with how many more bytes are read. Raises ForeignFormatError."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Values
    yaml.version = (1, 1)
    yaml.allow_duplicate_keys = True
    try:
        return yaml.load(_Watched(data, tell))
    except (YAMLError, ValueError, RecursionError) as error:
        reason = re.sub(r"\s+", " ", str(error))
        raise ForeignFormatError(f"the file is no YAML that can be read safely: {reason:.300}") from None
