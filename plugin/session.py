"""The tapes of one run of pytest: which test has which, how they are opened and closed, and what is told of them."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tapeproxy.plugin.entry import report_path
from tapeproxy.plugin.modes import MODES, Mode, default_mode, frozen, parse_age
from tapeproxy.plugin.options import TapeOptions, marked
from tapeproxy.plugin.telling import bare, carry
from tapeproxy.plugin.testtape import Mark, TestTape
from tapeproxy.proxy.inprocess.clamp import ROOT
from tapeproxy.proxy.inprocess.replays import TapeDriftError, TapeViolationError
from tapeproxy.proxy.inprocess.words import rules_of
from tapeproxy.proxy.testplaces import Scope, of_test, plain, root_lane, tape_path, tapes_beside, tapes_left
from tapeproxy.tapes.errors import TapeproxyError, TapeWriteError, UsageError
from tapeproxy.tapes.violations import Violation

FACTS = Path(".tapes") / "failures"


@dataclass(frozen=True, slots=True)
class TapePlan:
    """Where a test's tape is, for whom it is, and how it is used."""

    path: Path
    scope: Scope
    options: TapeOptions


class TapeSession:
    """Made when the first test with a tape is collected."""

    def __init__(self, config: pytest.Config) -> None:
        self.heard_orphans: set[Path] = set()
        self._config = config
        self._claimed: set[Path] = set()
        self._modules: set[Path] = set()
        self._since: dict[TestTape, int] = {}
        self._found: dict[TestTape, BaseException] = {}
        self.untold: list[str] = []
        """What no report carries, because the run was interrupted."""
        self.late: dict[str, list[Any]] = {}
        """By test: violations of threads and tasks that went on when it was over, for JSON, each with its text."""
        self._failed: set[TestTape] = set()
        self._running: set[TestTape] = set()
        self._marks: dict[TestTape, Mark] = {}
        self._kept: dict[str, list[str]] = {}
        self._item: pytest.Item | None = None
        self.mode = self._mode()

    def _mode(self) -> Mode:
        named: str = self._config.getoption("tape_mode") or self._config.getini("tape_mode")
        if not named:
            return default_mode(os.environ)
        for mode in MODES:
            if mode == named:
                return mode
        raise pytest.UsageError(f"tape_mode = {named}: there is only {', '.join(MODES)}")

    # --- which tape --------------------------------------------------------------------------------------------

    def collected(self, items: Sequence[pytest.Item], taped: Sequence[pytest.Item]) -> None:
        """Take note of whose tapes there may be. `items` are all, before some are deselected."""
        if any("::" in str(arg) for arg in self._config.args):
            return  # only a part of a file was asked for
        self._modules |= {item.path for item in items}
        for item in taped:
            with suppress(UsageError):  # the test itself will tell; nothing here may end the run
                self._claimed.add(self._place(item)[0])

    def orphans(self) -> list[Path]:
        """Tapes beside the collected files that no test there has, and those of files that are not there any more."""
        found = {path for module in self._modules for path in tapes_beside(module)}
        patterns = self._config.getini("python_files")
        for folder in {module.parent for module in self._modules}:
            found.update(tapes_left(folder, patterns))
        return sorted(self.heard_orphans | {path for path in found if of_test(path) not in self._claimed})

    def plan(self, item: pytest.Item, config: Mapping[str, Any]) -> TapePlan:
        """What is to be done for a test. Raises UsageError."""
        path, scope = self._place(item)
        marker = item.get_closest_marker("tape")
        given = marked(config, {} if marker is None else marker.kwargs, item.nodeid)
        given.pop("scope", None)
        age = given.pop("max_age", None) or self._config.getini("tape_max_age")
        rules = self._rules(given.pop("rules", ()))
        if self._config.getoption("tape_allow_network"):
            given["block_network"] = False
        mode = frozen(self.mode) if given.get("frozen") else self.mode
        accept = self._config.getoption("tape_accept")
        given |= {"max_age": parse_age(age) if age else None, "rules": rules, "accept": accept}
        options = TapeOptions(mode=mode, shared=scope != "function", **given)
        return TapePlan(path, scope, options)

    def _rules(self, given: Iterable[str]) -> tuple[str, ...]:
        rules_of(given)  # a text would be taken for a list of letters
        return (*self._config.getini("tape_rules"), *given)

    def _place(self, item: pytest.Item) -> tuple[Path, Scope]:
        marker = item.get_closest_marker("tape")
        scope: Scope = "function"
        if marker is not None:
            scope = marker.kwargs.get("scope", scope)
            if scope not in ("function", "module", "session"):
                raise UsageError(f"a tape's scope is function, module or session, not {scope!r}", where=item.nodeid)
            if marker.args:
                if not isinstance(marker.args[0], str | os.PathLike):
                    raise UsageError(f"a tape's path is a text, not {marker.args[0]!r}", where=item.nodeid)
                return item.path.parent / marker.args[0], scope
        name = item.nodeid.partition("::")[2].replace("::", ".")
        return tape_path(item.path, name, scope, self._config.rootpath), scope

    # --- its course --------------------------------------------------------------------------------------------

    def open(self, plan: TapePlan) -> TestTape:
        """Open it. Raises what a tape raises, and UsageError."""
        opened = TestTape(plan.path, plan.options)
        if opened.recording and plan.scope != "function" and hasattr(self._config, "workerinput"):
            opened.close(keep=False)
            raise UsageError(
                f"a tape of scope {plan.scope} can't be recorded by several workers",
                where=str(plan.path),
                fix="record it without -n",
            )
        self._since[opened] = 0
        return opened

    def begin(self, item: pytest.Item, opened: TestTape, *, shared: bool) -> None:
        """A test begins; `shared`: others have its tape, too, and may come before it or not."""
        self._item = item
        self._running.add(opened)
        self._since[opened] = len(opened.violations)
        self._marks[opened] = opened.mark()
        opened.resume(root_lane(item.nodeid) if shared else ROOT, item.nodeid, self._take_late)
        if opened.expired and not opened.recording:
            item.user_properties.append(("tape_expired", self.shown(opened.path)))

    def check(self, opened: TestTape, cause: BaseException | None) -> None:
        """Raise what the test did wrong, once; `reported` sees to it that a report carries it."""
        __tracebackhide__ = True
        try:
            opened.check(self._since[opened], cause)
        except TapeproxyError as error:
            found = error
        else:
            return
        finally:
            self._since[opened] = len(opened.violations)
        if cause is None and isinstance(found, TapeViolationError | TapeDriftError):
            self._found[opened] = bare(found)
        else:
            self._found[opened] = found
        raise self._found[opened] from cause

    def _take_late(self, test: str, found: Violation) -> None:
        self.late.setdefault(test, []).append(found.to_json() | {"text": found.to_text()})

    def interrupted(self, opened: TestTape) -> None:
        """The whole run ends within a test: there is no report of it, so the summary has to tell."""
        try:
            self.check(opened, None)
        except BaseException:
            self.untold.append(str(self._found.pop(opened)))

    def end(self, item: pytest.Item, opened: TestTape, *, own: bool) -> None:
        """A test is over; `own`: nobody else has its tape. Raises TapeViolationError, and others of a tape."""
        __tracebackhide__ = True
        opened.suspend()
        if own:
            self._close(opened)
        self.check(opened, None)
        if own and opened not in self._failed | self._running:
            opened.check_unused()

    def shared(self, scope: str) -> Iterator[dict[Path, TestTape]]:
        """Tapes that several tests have: yields where they are kept, and closes them afterwards."""
        tapes: dict[Path, TestTape] = {}
        yield tapes
        for opened in tapes.values():
            self._close(opened)
        for opened in tapes.values():
            if opened not in self._failed | self._running:
                opened.check_unused()

    def _close(self, opened: TestTape) -> None:
        whole = opened not in self._failed | self._running
        opened.close(keep=whole)
        if self._item is None:
            return
        properties = self._item.user_properties
        for path, told in opened.updated:
            properties.append(("tape_updated", f"{self.shown(path)}: {told}"))
            if opened.options.mode == "update" and not opened.options.accept:
                properties.append(("tape_waiting", str(path)))
        properties.extend(("tape_expired", self.shown(path)) for path in opened.old_programs)
        if opened.updating:
            return
        if opened.recording and whole and opened.path.exists():
            properties.append(("tape_recorded", self.shown(opened.path)))
        # A test that failed half-way leaves answers over, which says nothing.
        elif opened.unused and whole:
            properties.append(("tape_unused", f"{self.shown(opened.path)}: {len(opened.unused)}"))

    def reported(
        self,
        item: pytest.Item,
        opened: TestTape,
        report: pytest.TestReport,
        raised: pytest.ExceptionInfo[BaseException] | None,
    ) -> None:
        """A phase of a test is over: say in a failing one's report where its tape is, and leave what the replay knows.

        `raised`: what the phase ended with. The report of the last phase has the facts, if they are wanted.
        """
        found = self._found.pop(opened, None)
        if found is not None:
            carry(item, report, found, None if raised is None else raised.value)
        if report.when == "call" or not report.passed:
            self._running.discard(opened)
        if report.failed:
            self._fail(item, opened, report)
        if report.when == "teardown" and not opened.recording and report_path(self._config) is not None:
            vars(report)["tape_facts"] = opened.facts(self._marks[opened]) | {"kept": self._kept.pop(item.nodeid, [])}

    def _fail(self, item: pytest.Item, opened: TestTape, report: pytest.TestReport) -> None:
        self._failed.add(opened)
        if report.when == "teardown":
            return
        if opened.recording:
            report.sections.append(("tape", "it was recorded; the recording of a failing test is not kept"))
            return
        given, left = len(opened.exchanges), len(opened.unused)
        name = self.shown(opened.path)
        told = f"{given} answers of {name} were given, {left} were not"
        if opened.missing:
            told = f"there is no tape {name}"
        report.sections.append(("tape", "\n".join((told, *self._leave(item, opened, report)))))

    def _leave(self, item: pytest.Item, opened: TestTape, report: pytest.TestReport) -> Iterator[str]:
        """Leave files of what a failing test did, and tell them."""
        path = self._config.rootpath / FACTS / f"{plain(item.nodeid)}.json"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = self._kept[item.nodeid] = [self.shown(tape) for tape in opened.leave(path.with_suffix(""))]
            told = {"test": item.nodeid, "longrepr": report.longreprtext, "kept": kept}
            path.write_text(json.dumps(opened.facts(self._marks[opened]) | told, indent=1), "utf-8")
        except (OSError, TapeWriteError) as error:  # a test fails for its own reason, wherever it runs
            yield f"what the replay knows could not be written: {error}"
            return
        yield f"what the replay knows: {self.shown(path)}"
        yield from (f"what it did, as a tape: {one}" for one in kept)

    def shown(self, path: Path) -> str:
        """A path as it is told."""
        root = self._config.rootpath
        return str(path.relative_to(root) if path.is_relative_to(root) else path)
