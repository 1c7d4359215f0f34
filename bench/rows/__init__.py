"""The rows of the benchmark, by name, in the order in which they are measured. A new row is a function and a line."""

from bench.figures import Row
from bench.rows.firstbyte import first_byte
from bench.rows.load import latency, load, short
from bench.rows.pace import pace
from bench.rows.shimstart import shim_start
from bench.rows.size import size
from bench.rows.startup import startup
from bench.rows.steps import steps

ROWS: dict[str, Row] = {
    "load": load,
    "short": short,
    "latency": latency,
    "startup": startup,
    "first-byte": first_byte,
    "pace": pace,
    "steps": steps,
    "shim-start": shim_start,
    "size": size,
}
