"""The socket filter: a table of system calls, decided by a small interpreter of classic BPF, on both machines."""

import errno
import socket
import struct

import pytest

from tapeproxy.proxy.seccomp import ALLOW, KILL, MACHINES, Machine, socket_filter

ERRNO = 0x0005_0000
FASTOPEN = 0x2000_0000
MPTCP, SCTP = 262, 132
VSOCK, PACKET = 40, 17


def decide(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """What the kernel would make of a call. BPF has no loops: each jump is forward (linux/filter.h)."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    value = at = 0
    while True:
        code, yes, no, operand = struct.unpack_from("=HBBI", program, 8 * at)
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x45:
                at += yes if value & operand else no
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def refused(name: str) -> int:
    return ERRNO | int(getattr(errno, name))


@pytest.fixture(params=sorted(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


STREAM, DGRAM, RAW = 1, 2, 3
FLAGS = 0o2004000  # SOCK_CLOEXEC | SOCK_NONBLOCK
INET, INET6, UNIX, NETLINK, ALG = 2, 10, 1, 16, 38


@pytest.mark.parametrize(
    ("family", "kind", "protocol", "verdict"),
    [
        (INET, STREAM, 0, ALLOW),
        (INET6, STREAM, 6, ALLOW),
        (INET, STREAM | FLAGS, 6, ALLOW),
        (UNIX, STREAM, 0, ALLOW),
        (UNIX, DGRAM | FLAGS, 0, ALLOW),
        (NETLINK, RAW, 0, ALLOW),
        (ALG, 5, 0, ALLOW),
        (INET, DGRAM, 0, refused("EACCES")),
        (INET, DGRAM | FLAGS, 17, refused("EACCES")),
        (INET6, DGRAM, 0, refused("EACCES")),
        (INET, DGRAM, 1, refused("EACCES")),  # ping
        (INET, RAW, 255, refused("EACCES")),
        (INET, STREAM, MPTCP, refused("EPROTONOSUPPORT")),
        (INET6, STREAM, SCTP, refused("EPROTONOSUPPORT")),
        (PACKET, RAW, 0, refused("EAFNOSUPPORT")),
        (VSOCK, STREAM, 0, refused("EAFNOSUPPORT")),
        (0, STREAM, 0, refused("EAFNOSUPPORT")),
    ],
)
def test_sockets(machine: Machine, family: int, kind: int, protocol: int, verdict: int) -> None:
    program = socket_filter(machine)
    assert decide(program, machine.audit, machine.socket, family, kind, protocol) == verdict
    dirty = 0xDEAD_BEEF << 32  # the kernel reads ints: what stands above them counts for nothing
    assert decide(program, machine.audit, machine.socket, *(dirty | n for n in (family, kind, protocol))) == verdict


def test_fast_open_is_the_only_thing_that_sending_may_not(machine: Machine) -> None:
    program = socket_filter(machine)
    for number, position in ((machine.sendto, 3), (machine.sendmsg, 2), (machine.sendmmsg, 3)):
        others = [FASTOPEN] * 6
        others[position] = ~FASTOPEN & 0xFFFF_FFFF
        assert decide(program, machine.audit, number, *others) == ALLOW
        flags = [0] * 6
        flags[position] = FASTOPEN | 0x4000
        assert decide(program, machine.audit, number, *flags) == refused("EOPNOTSUPP")


def test_of_all_other_calls_only_io_uring_is_unknown(machine: Machine) -> None:
    program = socket_filter(machine)
    named = {machine.socket, machine.sendto, machine.sendmsg, machine.sendmmsg}
    verdicts = {number: decide(program, machine.audit, number, 1, 1) for number in range(600) if number not in named}
    assert {number for number, verdict in verdicts.items() if verdict != ALLOW} == {425}
    assert verdicts[425] == refused("ENOSYS")


def test_the_second_numbering_of_x86_64_is_unknown() -> None:
    machine = MACHINES["x86_64"]
    for number in (0x4000_0000, 0x4000_0000 + machine.socket, 0xFFFF_FFFF):
        assert decide(socket_filter(machine), machine.audit, number, INET, DGRAM, 0) == refused("ENOSYS")


def test_a_32_bit_program_runs_and_gets_no_sockets(machine: Machine) -> None:
    program = socket_filter(machine)
    for number in range(600):
        verdict = decide(program, machine.twin, number, INET, STREAM, 0)
        expected = refused("EACCES") if number in machine.twin_sockets else ALLOW
        assert verdict == (refused("ENOSYS") if number == 425 else expected)


def test_a_program_for_any_other_machine_is_ended(machine: Machine) -> None:
    assert decide(socket_filter(machine), 0x1234, machine.socket, INET, STREAM, 0) == KILL


def test_the_families_have_the_numbers_that_this_system_gives_them() -> None:
    assert (socket.AF_UNIX, socket.AF_INET) == (UNIX, INET)
    for name, number in (("AF_INET6", INET6), ("AF_NETLINK", NETLINK), ("AF_ALG", ALG), ("AF_VSOCK", VSOCK)):
        if hasattr(socket, "AF_NETLINK") and hasattr(socket, name):
            assert getattr(socket, name) == number
