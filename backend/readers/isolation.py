"""What a process gives up before it opens a stranger's file. Linux only; elsewhere only the limits hold.

Two walls stand before the network: a seccomp filter (works without privileges, also in containers) and, where
the kernel allows it, a network namespace without a device.
"""

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from dataclasses import asdict, dataclass

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_SET_DUMPABLE = 1, 38, 22, 4
_SECCOMP_MODE_FILTER = 2
_CLONE_NEWNET, _CLONE_NEWUSER, _CLONE_THREAD = 0x40000000, 0x10000000, 0x00010000
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EACCES, _ENOSYS = 13, 38

# The numbers of system calls differ per processor: (audit name, refused, absent, opening calls, clone)
_SYSCALLS: dict[str, tuple[int, tuple[int, ...], tuple[int, ...], dict[int, int], int]] = {
    "x86_64": (
        0xC000003E,
        # socket connect bind listen accept ptrace fork vfork execve execveat kill unlink rename mkdir rmdir link
        # symlink chmod truncate unlinkat renameat renameat2 mkdirat linkat symlinkat fchmodat creat io_uring_setup
        # process_vm_writev bpf mount unshare setns userfaultfd perf_event_open
        (41, 42, 49, 50, 43, 101, 57, 58, 59, 322, 62, 87, 82, 83, 84, 86, 88, 90, 76, 263, 264, 316, 258, 265,
         266, 268, 85, 425, 311, 321, 165, 272, 308, 323, 298),
        (435, 437),  # clone3 openat2: libc falls back to the calls that can be judged
        {2: 1, 257: 2},  # open, openat: where their flags stand
        56,
    ),
    "aarch64": (
        0xC00000B7,
        (198, 203, 200, 201, 202, 117, 221, 281, 129, 35, 38, 276, 34, 37, 36, 53, 45, 425, 271, 280, 40, 97, 268,
         282, 241),
        (435, 437),
        {56: 2},
        220,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """Which walls stand. `memory` is a limit on the address space; the rest says what the process cannot do."""

    memory: bool = False
    no_network: bool = False
    no_processes: bool = False
    no_writing: bool = False
    network_namespace: bool = False
    ends_with_parent: bool = False
    no_new_privileges: bool = False

    def as_dict(self) -> dict[str, bool]:
        return asdict(self)


def enter(*, memory_bytes: int, parent_pid: int) -> Isolation:
    """Irreversible. Call it after the imports that every document needs, before the first byte of one."""
    memory = _limits(memory_bytes)
    if not sys.platform.startswith("linux"):
        return Isolation(memory=memory)
    libc = ctypes.CDLL(None, use_errno=True)
    ends_with_parent = libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    if os.getppid() != parent_pid:
        os._exit(0)  # the parent died before the kernel could be asked to tell
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    namespace = libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0 or libc.unshare(_CLONE_NEWNET) == 0
    no_new_privileges = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    filtered = no_new_privileges and _filter(libc)
    return Isolation(
        memory=memory,
        no_network=filtered or namespace,
        no_processes=filtered,
        no_writing=filtered,
        network_namespace=namespace,
        ends_with_parent=ends_with_parent,
        no_new_privileges=no_new_privileges,
    )


def _limits(memory_bytes: int) -> bool:
    wanted = [(resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 64)]
    if hasattr(resource, "RLIMIT_NPROC"):
        wanted.append((resource.RLIMIT_NPROC, 0))
    for limit, value in wanted:
        # A hard limit below ours is as good.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    try:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ValueError, OSError):
        return False
    return True


def _filter(libc: ctypes.CDLL) -> bool:
    """A classic BPF program: known calls refused, opening only to read, everything else allowed."""
    known = _SYSCALLS.get(platform.machine())
    if known is None:
        return False
    audit, refused, absent, opening, clone = known
    load_number, load_audit = (0x20, 0, 0, 0), (0x20, 0, 0, 4)
    program = [load_audit, (0x15, 1, 0, audit), (0x06, 0, 0, _KILL), load_number]
    # Above 0x40000000 lie the x32 doubles of the same calls.
    program += [(0x35, 0, 1, 0x40000000), (0x06, 0, 0, _REFUSE | _ENOSYS)]
    for numbers, answer in ((refused, _REFUSE | _EACCES), (absent, _REFUSE | _ENOSYS)):
        for number in numbers:
            program += [(0x15, 0, 1, number), (0x06, 0, 0, answer)]
    write_flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    judged = [*((call, place, write_flags, True) for call, place in opening.items())]
    judged.append((clone, 0, _CLONE_THREAD, False))
    for number, place, mask, refuse_when_set in judged:
        argument = (0x20, 0, 0, 16 + 8 * place)
        # Is it this call? Then look at its argument; a set bit refuses, or is what allows it.
        program += [(0x15, 0, 4, number), argument, (0x45, *((0, 1) if refuse_when_set else (1, 0)), mask)]
        program += [(0x06, 0, 0, _REFUSE | _EACCES), (0x06, 0, 0, _ALLOW)]
    program.append((0x06, 0, 0, _ALLOW))
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    held = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(held)))
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0) == 0)
