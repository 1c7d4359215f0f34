"""The rules: every kind of thing that the shim can't reach, why it matters, and what to do about it.

A code is never reused. TP0: the file itself. TP1: identities. TP2: clocks. TP3: chance. TP4: the world outside.
TP5: order of concurrent work. TP6: ways past the wire or the shim. docs/DOCTOR.md has the same table; a test holds it.
"""

from tapeproxy.shim.scan.findings import Rule

_RULES = (
    Rule(
        "TP001",
        "error",
        "file that can't be read",
        "What can't be read or parsed can't be scanned.",
        "Mend the file, or leave it out.",
    ),
    Rule(
        "TP101",
        "error",
        "process or thread id",
        "The system hands out another number in every run.",
        "Use uuid.uuid4() (taped), or a counter of your own.",
    ),
    Rule(
        "TP102",
        "error",
        "memory address",
        "id(), the default hash and the default repr are where the object lies, which is another place in every run.",
        "Give the class a __repr__ (or make it a dataclass), or number the objects yourself.",
    ),
    Rule(
        "TP103",
        "error",
        "order of a set of objects",
        "The set is ordered by the objects' addresses, which differ in every run.",
        "Use a list or dict.fromkeys(...), sort it, or give the class __hash__ and __eq__.",
    ),
    Rule(
        "TP104",
        "note",
        "order of a set of strings",
        "PYTHONHASHSEED is on the tape, so replays agree; every run without tapeproxy, and every new recording, has "
        "another order.",
        "Wrap it in sorted(...).",
    ),
    Rule(
        "TP201",
        "error",
        "clock read in C or Rust",
        "The shim replaces Python's clocks; this one is read below Python.",
        "Start from datetime.now() or time.time(), and convert.",
    ),
    Rule(
        "TP202",
        "error",
        "time or chance inside SQL",
        "The database engine reads its own clock and generator.",
        "Make the value in Python and pass it as a parameter.",
    ),
    Rule(
        "TP203",
        "warning",
        "time of a file",
        "The file system stamps files with the real time.",
        "Compare contents instead, or keep the time yourself from time.time().",
    ),
    Rule(
        "TP204",
        "error",
        "the event loop's clock in a value",
        "loop.time() is the real one: locks and timeouts need it.",
        "Use time.monotonic().",
    ),
    Rule(
        "TP301",
        "error",
        "generator below Python without a seed",
        "It takes its seed from the system, below where the shim reaches.",
        "Seed it: from random.getrandbits(64), which is taped, or with a constant.",
    ),
    Rule(
        "TP302",
        "error",
        "the kernel's randomness, read as a file",
        "The bytes are new in every run, and files are read live.",
        "Use os.urandom() or uuid.uuid4(), which are taped.",
    ),
    Rule(
        "TP303",
        "error",
        "key or salt made in C or Rust",
        "Cryptographic libraries draw from the system, below where the shim reaches.",
        "Load the key from a file or variable, or make it from os.urandom() where that is allowed.",
    ),
    Rule(
        "TP401",
        "warning",
        "order of a folder's entries",
        "The file system decides it; another machine, or a folder written anew, has another.",
        "Wrap it in sorted(...).",
    ),
    Rule(
        "TP402",
        "warning",
        "facts about this machine",
        "Another machine, or this one a moment later, answers differently.",
        "Pass it in by a variable or argument, or keep it out of requests.",
    ),
    Rule(
        "TP403",
        "warning",
        "file outside the project",
        "What it holds is not on the tape, and is read live in a replay.",
        "Record with --io, or pass the content in.",
    ),
    Rule(
        "TP404",
        "warning",
        "output of another program",
        "It has its own clock, chance and view of the machine, and is run anew in a replay.",
        "Compute it in Python, or record with --io.",
    ),
    Rule(
        "TP405",
        "note",
        "standard input",
        "What was typed or piped in is not on the tape; a replay asks again.",
        "Give the replay the same input, or record with --io.",
    ),
    Rule(
        "TP501",
        "warning",
        "results in the order in which they are done",
        "Which is done first is a matter of timing.",
        "Use gather() or executor.map(), or sort the results by what was asked.",
    ),
    Rule(
        "TP502",
        "warning",
        "shared state that concurrent work changes",
        "Who comes first is a matter of timing, and so is the order of what it leaves.",
        "Return the results and collect them in order (executor.map, gather), or record with --threads.",
    ),
    Rule(
        "TP503",
        "warning",
        "generator shared by concurrent work",
        "Each draw moves the next one's, and who draws first is a matter of timing.",
        "Use the functions of `random` (each lane has its own), or give each worker a generator of its own.",
    ),
    Rule(
        "TP504",
        "note",
        "shared state under a lock",
        "The lock keeps it whole; the order in which it is taken is still a matter of timing.",
        "Record with --threads, which tapes the order, or return the results and collect them in order.",
    ),
    Rule(
        "TP505",
        "warning",
        "rows in the order of a parallel computation",
        "polars hashes and threads as it likes; its rows come in another order in every run.",
        "maintain_order=True, or sort.",
    ),
    Rule(
        "TP601",
        "error",
        "client that goes past the proxy",
        "Its requests don't come to the wire: they are not on the tape, and are refused in a replay.",
        "Leave the proxy to the environment (HTTPS_PROXY), or name it: proxy=os.environ['HTTPS_PROXY'].",
    ),
    Rule(
        "TP602",
        "error",
        "proxy settings changed by the program",
        "HTTPS_PROXY and its kin lead to the wire; without them requests go past it.",
        "Leave these variables alone, or only set them where they are absent.",
    ),
    Rule(
        "TP603",
        "warning",
        "traffic that is not HTTP",
        "Only HTTP is taped; a replay refuses the rest.",
        "If it may be live in a replay: --allow HOST:PORT.",
    ),
    Rule(
        "TP604",
        "error",
        "certificates pinned by the program",
        "The wire shows certificates of its own, trusted by way of SSL_CERT_FILE; a bundle named here is used instead.",
        "Leave it to the environment, or take the path from os.environ['SSL_CERT_FILE'] where it is set.",
    ),
    Rule(
        "TP605",
        "error",
        "Python started without the shim",
        "-I, -E and -S keep sitecustomize, and so the shim, out of the child: its clock and chance are its own.",
        "Leave the option out.",
    ),
    Rule(
        "TP606",
        "warning",
        "greenlets",
        "The shim knows threads and tasks; gevent's and eventlet's greenlets share one lane.",
        "Use threads or asyncio, or replay with --match any.",
    ),
)
RULES = {rule.code: rule for rule in _RULES}
"""By code, in order."""
