"""Which calls fail, and how."""

import errno
import math
import random

SHORT = 0
# Every call of the sample fails with each of these, and moves fewer bytes where it moves any.
ERRORS = (errno.EINTR, errno.ENOMEM, errno.EMFILE, errno.ECONNRESET, errno.ENOSPC)
# In addition, what its manual page names first for a machine or a peer in trouble.
FURTHER = {
    "accept4": (errno.ENFILE, errno.ECONNABORTED), "clone3": (errno.EAGAIN,), "connect": (errno.ECONNREFUSED,),
    "epoll_ctl": (errno.EPERM,), "fdatasync": (errno.EIO,), "fsync": (errno.EIO,), "openat": (errno.ENFILE, errno.EACCES),
    "pread64": (errno.EIO,), "pwrite64": (errno.EIO,), "recvfrom": (errno.ETIMEDOUT,), "sendmsg": (errno.EPIPE,),
    "sendto": (errno.EPIPE,), "socket": (errno.ENOBUFS,), "unlink": (errno.EBUSY,), "write": (errno.EIO,),
}
# What lasts for a while, such as a disk that is full: all such calls fail for this time.
LASTING_MILLISECONDS = 300
LASTING = {
    errno.EMFILE: ("accept4", "socket", "openat", "eventfd2", "pipe2", "epoll_create1", "socketpair"),
    errno.ENOSPC: ("write", "pwrite64", "fdatasync", "ftruncate", "openat", "epoll_ctl"),
    errno.ECONNRESET: ("recvfrom", "sendto", "sendmsg", "splice"), errno.ECONNREFUSED: ("connect",),
}
MOVES_BYTES = ("read", "pread64", "recvfrom", "write", "pwrite64", "sendto", "writev", "sendmsg", "splice", "getrandom")
CONNECTIONS = ("public_client", "tls_client", "admin_client", "upstream", "redis")
NAMES = {SHORT: "short"}


def error_name(number, milliseconds=0):
    return (NAMES.get(number) or errno.errorcode[number]) + (f"/{milliseconds}ms" if milliseconds else "")


def errors_of(call, about):
    """The errors with which a call is to fail."""
    # Linux lets no call for an eventfd fail but one that is interrupted, and its number comes whole. A wake-up that is
    # lost would be a wait for ever, for which no program can be ready.
    if about == "eventfd" and call in ("read", "write"):
        return [errno.EINTR] if call == "read" else []
    errors = [*ERRORS, *FURTHER.get(call, ())]
    if call in MOVES_BYTES:
        errors.append(SHORT)
    # Not yet: the event comes when the call would succeed.
    if about in CONNECTIONS and call in ("recvfrom", "sendto", "sendmsg", "splice"):
        errors.append(errno.EAGAIN)
    return errors


def sample(calls, size, seed):
    """Numbered calls, spread over all kinds: one of each, then more of those that are made often.

    :param calls: {(thread, call, object): how often a session makes it at least}
    """
    generator, kinds = random.Random(seed), sorted(calls)
    if size <= len(kinds):
        return sorted((*kind, number(generator, calls[kind])) for kind in generator.sample(kinds, size))
    weights = {kind: math.log2(calls[kind] + 1) for kind in kinds}
    total, chosen = sum(weights.values()), set()
    for kind in kinds:
        share = max(1, round((size - len(kinds)) * weights[kind] / total) + 1)
        numbers = range(1, calls[kind] + 1)
        chosen |= {(*kind, one) for one in generator.sample(numbers, min(share, len(numbers)))}
    return sorted(chosen)


def number(generator, count):
    return generator.randint(1, count)


def lasting(call, about):
    """The errors that last."""
    if about == "eventfd" and call in ("read", "write"):
        return []
    return [errno.ENOMEM, *(error for error, calls in LASTING.items() if call in calls)]


def runs(chosen):
    """One run for each call and each of its errors; for one call of each kind also with errors that last."""
    kinds = {call[:3]: call for call in reversed(chosen)}
    return [(call, error, 0) for call in chosen for error in errors_of(call[1], call[2])] + [
        (call, error, LASTING_MILLISECONDS) for call in kinds.values() for error in lasting(call[1], call[2])]


def spread(tasks, count, seed):
    """As many of the runs, of as many calls and errors as possible: each kind of call in turn."""
    generator, groups = random.Random(seed), {}
    for task in tasks:
        groups.setdefault((task[0][1], *task[1:]), []).append(task)
    order = [generator.sample(groups[name], len(groups[name])) for name in sorted(groups)]
    generator.shuffle(order)
    chosen = []
    while order and len(chosen) < count:
        chosen += [group.pop() for group in order][:count - len(chosen)]
        order = [group for group in order if group]
    return chosen
