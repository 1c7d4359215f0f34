"""What the keys of the terminal viewer do. `tuipages.HELP` says it to people."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tapeproxy.cli.tuipages import HELP

if TYPE_CHECKING:
    from tapeproxy.cli.tuiapp import Viewer

ACTIONS: Final[dict[str, Callable[["Viewer"], Any]]] = {
    "j": lambda app: app.step(1),
    "k": lambda app: app.step(-1),
    "down": lambda app: app.step(1),
    "up": lambda app: app.step(-1),
    "J": lambda app: app.step(1, in_lane=True),
    "K": lambda app: app.step(-1, in_lane=True),
    "/": lambda app: app.ask_filter(),
    "?": lambda app: app.say([HELP]),
    "g": lambda app: app.begin_go(),
    "t": lambda app: app.turn(),
    "m": lambda app: app.mark(),
    "c": lambda app: app.say(app.view.context()),
    "d": lambda app: app.compare(),
    "b": lambda app: app.to_branch(),
    "w": lambda app: app.why(),
    "W": lambda app: app.ask_why(),
    "p": lambda app: app.player.play(1),
    "P": lambda app: app.player.play(10),
    "f": lambda app: app.forks.begin(),
    "x": lambda app: app.forks.stop(),
    "o": lambda app: app.forks.tell_output(),
    "u": lambda app: app.back(),
    "l": lambda app: app.lanes.switch(),
    "+": lambda app: app.lanes.zoom(0.6),
    "=": lambda app: app.lanes.zoom(0.6),
    "-": lambda app: app.lanes.zoom(1.6),
    "0": lambda app: app.lanes.fit(),
    "left": lambda app: app.lanes.pan(-0.25),
    "right": lambda app: app.lanes.pan(0.25),
    "q": lambda app: app.exit(),
    "enter": lambda app: app.fold(),
    " ": lambda app: app.fold(),
    "tab": lambda app: app.switch(),
    "escape": lambda app: app.clear(),
}
