"""Confines the process that calls it, and all it will start, to TCP on a few ports. Knows system calls, no policy.

Landlock (landlock(7), ABI 4, Linux 6.7) refuses connect(2) to every other TCP port. It knows ports, not hosts: an
allowed port is allowed on every host. It leaves UDP and everything else alone, which a seccomp filter refuses
(`proxy/seccomp.py`). Both are inherited, can't be taken off, need no rights, and take away setuid programs' powers.
"""

import ctypes
import errno
import functools
import os
import struct
import sys
from collections.abc import Callable, Iterable

from tapeproxy.proxy.seccomp import MACHINES, socket_filter

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_CONNECT_TCP = 2
_RULE_NET_PORT = 2
_TCP_RULES = 4
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER = 1
_SPEC_ALLOW = 4
_SET_NO_NEW_PRIVS = 38


def refusal() -> str:
    """Why this machine can't do it; nothing when it can."""
    if sys.platform != "linux":
        return f"{sys.platform} has none"
    try:
        version = _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return "it is switched off in this kernel"
        return "this kernel has none" if error.errno == errno.ENOSYS else os.strerror(error.errno or 0).lower()
    return "" if version >= _TCP_RULES else f"this kernel's (ABI {version}) has no rules for TCP; Linux 6.7 has"


def filters_sockets() -> bool:
    """Whether UDP and the other ways out are refused here too, or TCP alone is."""
    return os.uname().machine in MACHINES


def confinement(ports: Iterable[int]) -> Callable[[], None]:
    """A step to be taken between fork and exec: from then on TCP connects to these ports only, and no UDP.

    All that can be prepared is: the step makes three system calls. Raises OSError, as does the step.
    """
    # struct landlock_ruleset_attr: access to files is not handled, of the network connecting is.
    attributes = struct.pack("=QQ", 0, _CONNECT_TCP)
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    for port in ports:
        rule = struct.pack("=QQ", _CONNECT_TCP, port)
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_NET_PORT), rule, ctypes.c_uint32(0))
    filtering = _filtering()

    def confine() -> None:
        if _libc().prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
        filtering()

    return confine


def _filtering() -> Callable[[], object]:
    name = os.uname().machine
    if name not in MACHINES:
        return lambda: None
    program = socket_filter(MACHINES[name])
    room = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: how many instructions of 8 bytes, and where.
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(room))

    def install() -> int:
        assert room  # has to outlive `described`
        # Without this flag kernels before 5.16 slow down everything the process does from then on.
        return _call(_SECCOMP[name], ctypes.c_uint(_SET_MODE_FILTER), ctypes.c_uint(_SPEC_ALLOW), described)

    return install


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _call(number: int, *arguments: object) -> int:
    """A system call that libc has no name for. Raises OSError."""
    result: int = _libc().syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
