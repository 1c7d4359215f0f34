"""What mitmproxy logs: nothing of it is printed, and its errors count as failures. Knows its logger's name."""

import logging

from tapeproxy.addons.failures import Failures


class MitmLog(logging.Handler):
    """Takes over mitmproxy's logger between `attach` and `detach`."""

    def __init__(self, failures: Failures) -> None:
        super().__init__(logging.ERROR)
        self._failures = failures
        self._logger = logging.getLogger("mitmproxy")
        self._before = (self._logger.level, self._logger.propagate)

    def attach(self) -> None:
        """Put this handler in the place of all others."""
        self._before = (self._logger.level, self._logger.propagate)
        # Below ERROR mitmproxy logs several lines an exchange; a level here keeps it from composing them.
        self._logger.setLevel(logging.ERROR)
        self._logger.propagate = False
        self._logger.addHandler(self)

    def detach(self) -> None:
        """Leave the logger as it was."""
        self._logger.removeHandler(self)
        level, self._logger.propagate = self._before
        self._logger.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        """Count an error: a hook that raised, a protocol engine that crashed."""
        error = record.exc_info[1] if record.exc_info else None
        self._failures.add(error or RuntimeError(record.getMessage()))
