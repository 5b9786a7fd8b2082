"""A Python that finds itself on macOS, as far as a Linux kernel can pretend.

Job: take away what only Linux' Python has, before anything else is imported: names, functions of
    the C library, /proc and /sys, kinds of sockets and addresses. A process has it by this
    directory on its PYTHONPATH; its children inherit it.
Invariant: what macOS has, too, stays: a test that fails here would fail there.
"""

import ctypes
import errno
import fcntl
import importlib
import os
import platform
import resource
import select
import selectors
import signal
import socket
import sys
import sysconfig
import time
import types

_HIDDEN = ("/proc", "/sys")
# By their beginnings, as Python's documentation says where each is to be had.
_NAMES = {
    os: """CLONE_ EFD_ GRND_ MFD_ O_DIRECT\\b O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE
        P_PIDFD POSIX_FADV RTLD_DEEPBIND RWF_ SCHED_BATCH SCHED_IDLE SCHED_RESET SPLICE_ XATTR_
        copy_file_range eventfd fdatasync getrandom getres getxattr listxattr memfd_create
        pidfd_open pipe2 posix_fadvise posix_fallocate removexattr sched_get sched_param sched_rr
        sched_set setns setres setxattr splice unshare waitid""",
    select: "epoll EPOLL",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo SIGCLD SIGPOLL SIGPWR SIGRTM SIGSTKFLT",
    socket: """AF_ALG AF_BLUETOOTH AF_CAN AF_NETLINK AF_PACKET AF_QIPCRTR AF_RDS AF_TIPC AF_VSOCK
        ALG_ BT CAN_ IOCTL_VM MSG_CMSG_CLOEXEC MSG_CONFIRM MSG_ERRQUEUE MSG_FASTOPEN MSG_MORE
        MSG_NOSIGNAL NETLINK_ PACKET_ SCM_CREDENTIALS SOCK_CLOEXEC SOCK_NONBLOCK SO_BINDTODEVICE
        SO_DOMAIN SO_INCOMING_CPU SO_MARK SO_PASSCRED SO_PASSSEC SO_PEERCRED SO_PEERSEC SO_PRIORITY
        SO_PROTOCOL SO_VM TCP_CONGESTION TCP_CORK TCP_DEFER TCP_INFO TCP_KEEPIDLE TCP_LINGER2
        TCP_QUICKACK TCP_SYNCNT TCP_USER TCP_WINDOW TIPC_ VM_ VMADDR""",
    fcntl: "DN_ F_ADD_SEALS F_GETLEASE F_GETPIPE F_GETSIG F_GET_SEALS F_NOTIFY F_OFD F_SEAL "
    "F_SETLEASE F_SETPIPE F_SETSIG LOCK_MAND LOCK_READ LOCK_RW LOCK_WRITE",
    resource: "RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_OFILE RLIMIT_RT RLIMIT_SIGPENDING prlimit",
    time: "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid",
}  # fmt: skip
_LIBRARY = {
    "inotify_add_watch", "inotify_init", "inotify_init1", "mallopt", "malloc_trim", "pivot_root",
    "prctl", "setns", "sethostname", "syncfs", "syscall", "umount2", "unshare",
}  # fmt: skip


def _hide_names() -> None:
    for module, beginnings in _NAMES.items():
        wanted = beginnings.split()
        for name in dir(module):
            if any(_begins(name, one) for one in wanted):
                delattr(module, name)


def _begins(name: str, one: str) -> bool:
    return name == one[:-2] if one.endswith("\\b") else name.startswith(one)


def _is_hidden(path: object) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    text = os.fsdecode(path)
    return any(text == place or text.startswith(f"{place}/") for place in _HIDDEN)


def _hide_files() -> None:
    for name in ("stat", "lstat", "readlink", "access", "chdir"):
        _hide_from(name)
    sys.addaudithook(_refuse)


def _hide_from(name: str) -> None:
    """What no audit hook hears of."""
    real = getattr(os, name)

    def seen(path: object, *arguments: object, **more: object) -> object:
        if _is_hidden(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return real(path, *arguments, **more)

    # Others ask whether a function takes descriptors, or follows links.
    for known in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        if real in known:
            known.add(seen)
    setattr(os, name, seen)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and _is_hidden(arguments[0]):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[0])
    if event == "socket.bind":
        _refuse_address(arguments[1])


def _refuse_address(address: object) -> None:
    if isinstance(address, tuple) and str(address[0]).startswith("127."):
        if address[0] != "127.0.0.1":  # loopback has no others until somebody adds them
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    elif isinstance(address, str | bytes):
        path = os.fsencode(address)
        if path.startswith(b"\0") or len(path) > 103:
            raise OSError(errno.ENAMETOOLONG, "AF_UNIX path too long")


class _Socket(socket.socket):
    def __init__(self, family=-1, type=-1, proto=-1, fileno=None) -> None:  # noqa: A002
        if family == socket.AF_UNIX and type == socket.SOCK_SEQPACKET:
            raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))
        super().__init__(family, type, proto, fileno)


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> object:
        if name in _LIBRARY:
            raise AttributeError(f"dlsym: symbol not found: {name}")
        return super().__getattr__(name)


def _be_another_system() -> None:
    sysconfig.get_config_vars()  # of the Python that is really here
    platform.processor()
    here = os.uname()
    there = os.uname_result(("Darwin", here.nodename, "23.6.0", "Darwin Kernel", "arm64"))
    os.uname = lambda: there
    platform._uname_cache = None
    sys.platform = "darwin"
    # What urllib asks the system for there.
    proxies = types.ModuleType("_scproxy")
    proxies._get_proxy_settings = dict
    proxies._get_proxies = dict
    sys.modules["_scproxy"] = proxies


_hide_names()
importlib.reload(selectors)  # it has chosen before
_hide_files()
socket.socket = _Socket
socket.SocketType = _Socket
ctypes.CDLL = _Library
_be_another_system()
