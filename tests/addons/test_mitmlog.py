"""mitmproxy's log goes nowhere but into the count of failures."""

import logging

from tapeproxy.addons.failures import Failures
from tapeproxy.addons.mitmlog import MitmLog


def test_errors_are_counted_and_the_logger_is_given_back() -> None:
    failures, logger = Failures(), logging.getLogger("mitmproxy")
    before = (logger.level, logger.propagate, list(logger.handlers))
    log = MitmLog(failures)
    log.attach()
    try:
        child = logging.getLogger("mitmproxy.proxy.server")
        child.warning("a warning is no failure")
        assert failures.count == 0
        try:
            raise ValueError("inside a hook")
        except ValueError:
            child.exception("addon error")
        child.error("without an exception: %s", 5)
    finally:
        log.detach()
    assert failures.count == 2 and isinstance(failures.first, ValueError)
    assert (logger.level, logger.propagate, list(logger.handlers)) == before
