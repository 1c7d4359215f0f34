"""The rows of the benchmark, by name, in the order in which they are measured. A new row is a function and a line."""

from bench.figures import Row
from bench.rows.agent import agent, client
from bench.rows.bigtape import big_tape
from bench.rows.firstbyte import first_byte
from bench.rows.floor import floor
from bench.rows.load import latency, load, mocks, short
from bench.rows.pace import pace
from bench.rows.record import record
from bench.rows.shimcalls import shim_calls
from bench.rows.shimstart import shim_start
from bench.rows.size import size
from bench.rows.startup import startup
from bench.rows.steps import steps

ROWS: dict[str, Row] = {
    "load": load,
    "mocks": mocks,
    "short": short,
    "latency": latency,
    "client": client,
    "startup": startup,
    "record": record,
    "first-byte": first_byte,
    "pace": pace,
    "agent": agent,
    "size": size,
    "big-tape": big_tape,
    "shim-calls": shim_calls,
    "shim-start": shim_start,
    "floor": floor,
    "steps": steps,
}
