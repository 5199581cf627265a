"""What the worker gives up after start-up, so that code which escapes its VM finds nothing.

In this order, each with raw system calls: the environment, resource limits, a death that
follows the host's, Landlock (no path, no TCP port) and, last, a seccomp filter that allows
only what a worker at work needs.
Everything is imported and opened before; nothing can be opened after. Each step that this
machine does not offer is reported as missing, never silently skipped.
"""

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable

from codemode.core.limits import WORKER_DATA_BYTES
from codemode.core.types import Measure

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_DUMPABLE = 4
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_LANDLOCK_VERSION_FLAG = 1
_SECCOMP_SET_FILTER, _SECCOMP_TSYNC = 1, 1
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM = 1

# Filesystem rights that each Landlock version can withhold, and TCP rights from version 4 on.
_FS_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_RIGHTS = 0b11

# What a worker at work needs: frames, memory, time, randomness, signals of wasm traps, its end.
_ALLOWED = (
    "read", "write", "readv", "writev", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "mremap", "madvise",
    "brk", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "futex", "sched_yield", "getpid", "gettid",
    "clock_gettime", "clock_nanosleep", "nanosleep", "gettimeofday", "getrandom", "exit", "exit_group",
    "restart_syscall", "tgkill", "poll", "ppoll", "getrusage", "membarrier", "rseq", "set_robust_list",
)  # fmt: skip
# What no accident asks for: the process is killed rather than refused.
_FATAL = ("socket", "socketpair", "connect", "execve", "execveat", "fork", "vfork", "ptrace", "process_vm_writev")

_NUMBERS: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10,
            "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "readv": 19,
            "writev": 20, "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39, "socket": 41,
            "connect": 42, "socketpair": 53, "fork": 57, "vfork": 58, "execve": 59, "exit": 60, "gettimeofday": 96,
            "getrusage": 98, "ptrace": 101, "sigaltstack": 131, "gettid": 186, "futex": 202, "restart_syscall": 219,
            "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "tgkill": 234, "ppoll": 271,
            "set_robust_list": 273, "process_vm_writev": 311, "getrandom": 318, "execveat": 322, "membarrier": 324,
            "rseq": 334,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "close": 57, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "ppoll": 73, "fstat": 80,
            "exit": 93, "exit_group": 94, "futex": 98, "set_robust_list": 99, "nanosleep": 101, "clock_gettime": 113,
            "clock_nanosleep": 115, "ptrace": 117, "sched_yield": 124, "restart_syscall": 128, "tgkill": 131,
            "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "getrusage": 165,
            "gettimeofday": 169, "getpid": 172, "gettid": 178, "socket": 198, "socketpair": 199, "connect": 203,
            "brk": 214, "munmap": 215, "mremap": 216, "execve": 221, "mmap": 222, "mprotect": 226, "madvise": 233,
            "process_vm_writev": 271, "getrandom": 278, "execveat": 281, "membarrier": 283, "rseq": 293,
        },
    ),
}  # fmt: skip


def lock_down() -> list[Measure]:
    """Give up what can be given up; return every measure with its outcome.

    Call it on the thread that will run guest code, after everything was imported.
    """
    os.environ.clear()
    measures = [Measure("environment", True, "no variable is left"), _limit_resources()]
    if sys.platform != "linux":
        missing = f"not offered by {platform.system()}; run codemode in a container or under another user"
        return measures + [
            Measure(name, False, missing) for name in ("parent death", "no_new_privs", "landlock", "seccomp")
        ]
    libc = ctypes.CDLL(None, use_errno=True)
    steps = (
        ("parent death", _follow_the_host),
        ("no_new_privs", _forbid_privileges),
        ("landlock", _forbid_paths),
        ("seccomp", _forbid_calls),
    )
    return measures + [_attempt(name, step, libc) for name, step in steps]


def _attempt(name: str, step: Callable[[ctypes.CDLL], str], libc: ctypes.CDLL) -> Measure:
    try:
        return Measure(name, True, step(libc))
    except OSError as error:
        return Measure(name, False, f"this kernel refuses it: {error.strerror or error}")


def _limit_resources() -> Measure:
    try:
        import resource  # not on every platform
    except ImportError:
        return Measure("resource limits", False, f"not offered by {platform.system()}")
    limits = (
        (resource.RLIMIT_DATA, WORKER_DATA_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
    )
    for kind, wanted in limits:
        _, hard = resource.getrlimit(kind)
        ceiling = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (ceiling, ceiling))
    return Measure("resource limits", True, f"data {WORKER_DATA_BYTES >> 20} MiB, no core, file or child")


def _follow_the_host(libc: ctypes.CDLL) -> str:
    """Die with the host, even inside a built-in that never looks at the pipe."""
    _checked(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    return "killed when its host dies"


def _forbid_privileges(libc: ctypes.CDLL) -> str:
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0))
    return "no new privileges, not dumpable"


def _forbid_paths(libc: ctypes.CDLL) -> str:
    version = _checked(libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION_FLAG))
    rights = (1 << _FS_RIGHTS.get(version, max(_FS_RIGHTS.values()))) - 1
    attributes = struct.pack("<Q", rights) if version < 4 else struct.pack("<QQ", rights, _NET_RIGHTS)
    ruleset = _checked(libc.syscall(_LANDLOCK_CREATE, attributes, len(attributes), 0))
    try:
        _checked(libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)
    return f"no path{' and no TCP port' if version >= 4 else ''} (version {version})"


def _forbid_calls(libc: ctypes.CDLL) -> str:
    known = _NUMBERS.get(platform.machine())
    if known is None:
        raise OSError(0, f"no table of system calls for {platform.machine()}")
    program = build_filter(*known)
    buffer = ctypes.create_string_buffer(program, len(program))
    prog = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    number = 317 if platform.machine() == "x86_64" else 277
    _checked(libc.syscall(number, _SECCOMP_SET_FILTER, _SECCOMP_TSYNC, prog))
    return f"{len(_ALLOWED)} system calls are left; sockets, programs and children end the process"


def build_filter(architecture: int, numbers: dict[str, int]) -> bytes:
    """Return the BPF program: foreign architectures die, listed calls pass, the rest gets EPERM."""
    allowed = sorted(numbers[name] for name in _ALLOWED if name in numbers)
    fatal = sorted(numbers[name] for name in _FATAL if name in numbers)
    rules = [(number, _ALLOW) for number in allowed] + [(number, _KILL_PROCESS) for number in fatal]
    code = [
        (0x20, 0, 0, 4),  # load the architecture
        (0x15, 1, 0, architecture),  # ours: skip the next
        (0x06, 0, 0, _KILL_PROCESS),
        (0x20, 0, 0, 0),  # load the number
    ]
    for number, verdict in rules:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, verdict)]
    code.append((0x06, 0, 0, _ERRNO | _EPERM))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
