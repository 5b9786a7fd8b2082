"""Seccomp profiles as the OCI spec has them. Pure.

Job: RuntimeDefault → what containerd allows by default, by capabilities; a profile of the node's →
    itself, checked.
Invariant: what is not named is refused with EPERM; clone3 with ENOSYS, so that C libraries take
    clone instead, whose flags can be looked at.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sampan.kubelet.contracts.runtime import RuntimeFailure

RUNTIME_DEFAULT, UNCONFINED, LOCALHOST = "RuntimeDefault", "Unconfined", "localhost/"
_MOST_BYTES = 1 << 20
_ENOSYS = 38
# New namespaces: mount, cgroup, host name, IPC, user, pid, network.
_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000
_NEW_NAMESPACES |= 0x40000000
_VSOCK = 40
_ARCHITECTURES = {
    "amd64": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
    "arm64": ["SCMP_ARCH_ARM", "SCMP_ARCH_AARCH64"],
}
_OF_ARCHITECTURE = {
    "amd64": "arch_prctl modify_ldt",
    "arm64": "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2",
}
_FILES = """open openat openat2 creat close close_range read readv pread64 preadv preadv2 write
writev pwrite64 pwritev pwritev2 lseek _llseek dup dup2 dup3 fcntl fcntl64 flock ioctl
stat stat64 lstat lstat64 fstat fstat64 fstatat64 newfstatat statx access faccessat faccessat2
chmod fchmod fchmodat fchmodat2 chown chown32 fchown fchown32 fchownat lchown lchown32 umask
link linkat symlink symlinkat readlink readlinkat unlink unlinkat rename renameat renameat2
mkdir mkdirat rmdir mknod mknodat getdents getdents64 getcwd chdir fchdir
truncate truncate64 ftruncate ftruncate64 fallocate fadvise64 fadvise64_64 readahead
sync syncfs fsync fdatasync sync_file_range statfs statfs64 fstatfs fstatfs64
getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr
removexattr lremovexattr fremovexattr utime utimes futimesat utimensat utimensat_time64
copy_file_range sendfile sendfile64 splice tee vmsplice pipe pipe2 memfd_create memfd_secret
inotify_init inotify_init1 inotify_add_watch inotify_rm_watch fanotify_mark name_to_handle_at
io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents io_pgetevents_time64
landlock_create_ruleset landlock_add_rule landlock_restrict_self cachestat"""
_WAITING = """poll ppoll ppoll_time64 select _newselect pselect6 pselect6_time64
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old epoll_pwait
epoll_pwait2 eventfd eventfd2 signalfd signalfd4
timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64"""
_PROCESSES = """fork vfork execve execveat exit exit_group wait4 waitid waitpid kill tkill tgkill
getpid getppid gettid getpgid getpgrp setpgid getsid setsid set_tid_address restart_syscall
getuid getuid32 geteuid geteuid32 getgid getgid32 getegid getegid32 getgroups getgroups32
getresuid getresuid32 getresgid getresgid32 setuid setuid32 setgid setgid32 setgroups setgroups32
setreuid setreuid32 setregid setregid32 setresuid setresuid32 setresgid setresgid32
setfsuid setfsuid32 setfsgid setfsgid32 capget capset prctl seccomp
getrlimit ugetrlimit setrlimit prlimit64 getrusage getpriority setpriority ioprio_get ioprio_set
sched_yield sched_getaffinity sched_setaffinity sched_getattr sched_setattr sched_getparam
sched_setparam sched_getscheduler sched_setscheduler sched_get_priority_max
sched_get_priority_min sched_rr_get_interval sched_rr_get_interval_time64 getcpu
futex futex_time64 futex_waitv futex_wait futex_wake futex_requeue get_robust_list set_robust_list
get_thread_area set_thread_area rseq membarrier pidfd_open pidfd_send_signal process_mrelease
uname sysinfo syslog getrandom"""
_SIGNALS = """rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack sigprocmask sigreturn pause
alarm getitimer setitimer"""
_MEMORY = """brk mmap mmap2 munmap mremap mprotect madvise mincore msync mlock mlock2 mlockall
munlock munlockall remap_file_pages pkey_alloc pkey_free pkey_mprotect map_shadow_stack"""
_TIME = """time times gettimeofday clock_getres clock_getres_time64 clock_gettime clock_gettime64
clock_nanosleep clock_nanosleep_time64 nanosleep timer_create timer_delete timer_getoverrun
timer_gettime timer_gettime64 timer_settime timer_settime64"""
_SOCKETS = """socketpair socketcall bind listen accept accept4 connect shutdown getsockname
getpeername getsockopt setsockopt send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg
recvmmsg_time64"""
_IPC = """ipc msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat
shmctl shmdt shmget mq_open mq_unlink mq_notify mq_getsetattr mq_timedreceive
mq_timedreceive_time64 mq_timedsend mq_timedsend_time64"""
ALWAYS = " ".join((_FILES, _WAITING, _PROCESSES, _SIGNALS, _MEMORY, _TIME, _SOCKETS, _IPC)).split()
WITH_CAPABILITY = {
    "CAP_DAC_READ_SEARCH": "open_by_handle_at",
    "CAP_SYS_ADMIN": "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie "
    "mount mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname "
    "sethostname setns umount umount2 unshare",
    "CAP_SYS_BOOT": "reboot",
    "CAP_SYS_CHROOT": "chroot",
    "CAP_SYS_MODULE": "delete_module init_module finit_module query_module",
    "CAP_SYS_PACCT": "acct",
    "CAP_SYS_PTRACE": "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace",
    "CAP_SYS_RAWIO": "iopl ioperm",
    "CAP_SYS_TIME": "settimeofday stime clock_settime clock_settime64 adjtimex clock_adjtime "
    "clock_adjtime64",
    "CAP_SYS_TTY_CONFIG": "vhangup",
    "CAP_SYS_NICE": "get_mempolicy mbind set_mempolicy set_mempolicy_home_node",
    "CAP_SYSLOG": "syslog",
    "CAP_BPF": "bpf",
    "CAP_PERFMON": "perf_event_open",
}
_PERSONALITIES = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)


def runtime_default(architecture: str, capabilities: Collection[str]) -> dict[str, Any]:
    names = [*ALWAYS, *_OF_ARCHITECTURE.get(architecture, "").split()]
    for capability, more in WITH_CAPABILITY.items():
        if capability in capabilities:
            names += more.split()
    rules: list[dict[str, Any]] = [_allow(sorted(set(names)))]
    rules += [_allow(["personality"], (0, value, "SCMP_CMP_EQ")) for value in _PERSONALITIES]
    rules.append(_allow(["socket"], (0, _VSOCK, "SCMP_CMP_NE")))
    if "CAP_SYS_ADMIN" not in capabilities:
        rules.append(_allow(["clone"], (0, _NEW_NAMESPACES, "SCMP_CMP_MASKED_EQ")))
        rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS})
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "architectures": _ARCHITECTURES.get(architecture, []),
        "syscalls": rules,
    }


def _allow(names: list[str], *arguments: tuple[int, int, str]) -> dict[str, Any]:
    rule: dict[str, Any] = {"names": names, "action": "SCMP_ACT_ALLOW"}
    if arguments:
        rule["args"] = [
            {"index": index, "value": value, "op": op} | ({"valueTwo": 0} if "MASKED" in op else {})
            for index, value, op in arguments
        ]
    return rule


def profile(wanted: str, architecture: str, capabilities: Collection[str]) -> dict[str, Any] | None:
    """None: everything is allowed. Raises RuntimeFailure."""
    if wanted == UNCONFINED:
        return None
    if wanted == RUNTIME_DEFAULT:
        return runtime_default(architecture, capabilities)
    return _of_node(Path(wanted.removeprefix(LOCALHOST)))


def _of_node(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise RuntimeFailure(f"seccomp profile {file} is too large")
        found = json.loads(file.read_text())
        assert isinstance(found["defaultAction"], str)
    except OSError as error:
        why = f"open {file}: {(error.strerror or str(error)).lower()}"
        raise RuntimeFailure(
            f'cannot load seccomp profile "{file}": {why}', reason="CreateContainerError"
        ) from error
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise RuntimeFailure(
            f'decoding seccomp profile failed "{file}": {error}', reason="CreateContainerError"
        ) from error
    return {
        name: found[name]
        for name in ("defaultAction", "defaultErrnoRet", "architectures", "flags", "syscalls")
        if name in found
    }
