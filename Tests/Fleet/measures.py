"""The measures of a fleet: each fault under load, what may fail in it, and what was seen. FAIL where they differ."""

import asyncio
import collections
import time

import counting
from processes import Failed

BASELINE = 10.0
AFTER = 5.0
# A 503 is right from the fault until the next master is there, and this long.
SETTLED = 2.0
FAILOVERS = PARTITIONS = RESHARDS = 10
SLOTS = 1000
PARTITION = 10
# Of ten in a row: seconds, and slots.
SHORT_PARTITION, FEW_SLOTS = 4, 100
# Connections of nginx and to the upstream come and go with the load; these are the ones that must not grow.
ALLOWED_DESCRIPTORS, ALLOWED_MEMORY = 4, 0.15


def judge(windows, later, allowed, untouched):
    """What is wrong with the responses of a measure; pure.

    :param windows: responses by kind.
    :param later: when 503s were sent, and of which kind.
    :param allowed: the times in which a 503 is right, as (from, to).
    :param untouched: kinds of which no request may get anything but its response.
    """
    wrong = []
    for kind, window in sorted(windows.items()):
        for name, count in sorted(window.failures.items()):
            wrong.append(f"{kind}: {count} × {name}")
        if kind in untouched and window.outcomes["503"]:
            wrong.append(f"{kind}: {window.outcomes['503']} × 503")
    outside = [kind for finished, kind in later if kind not in untouched and counting.outside([finished], allowed)]
    for kind, count in sorted(collections.Counter(outside).items()):
        wrong.append(f"{kind}: {count} × 503 outside of the failover")
    return wrong


def grown(before, after):
    """What an instance holds more than before; both are ``processes.Resources``; pure."""
    wrong = []
    for name in sorted(after.connections):
        if name not in ("clients", "upstream") and after.connections[name] > before.connections[name]:
            wrong.append(f"{name} connections {before.connections[name]} → {after.connections[name]}")
    if after.others > before.others + ALLOWED_DESCRIPTORS:
        wrong.append(f"other descriptors {before.others} → {after.others}")
    if after.resident > before.resident * (1 + ALLOWED_MEMORY):
        wrong.append(f"resident {before.resident} → {after.resident} MiB")
    return wrong


def table(rows):
    """The rows (measure, asked, seen, wrong) as text; pure."""
    lines = []
    for name, asked, seen, wrong in rows:
        lines += [f"{'FAIL' if wrong else 'ok  '}  {name}", f"      asked: {asked}", f"      seen:  {seen}"]
        lines += [f"      wrong: {one}" for one in wrong]
    return "\n".join(lines)


class Measures:
    """Runs them one after the other; each begins with a fleet that is whole."""

    def __init__(self, operator, newer=None):
        """:param newer: the program that the gateways are upgraded to; they began with an older one."""
        self.operator, self.fleet, self.load, self.newer = operator, operator.fleet, operator.load, newer
        self.rows = []

    async def run(self, only=()):
        known = {"upgrade": self.upgrade, "rotate": self.rotate, "kill": self.kill, "partition": self.partition,
                 "reshard": self.reshard, "failovers": self.failovers, "partitions": self.partitions,
                 "reshards": self.reshards, "promote": self.promote}
        if self.fleet.store.kind != "cluster":
            del known["reshard"], known["reshards"]
        if self.fleet.store.kind == "single":
            for name in ("kill", "partition", "failovers", "partitions"):
                del known[name]
        if not self.fleet.keys:
            del known["rotate"]
        if not self.newer:
            del known["upgrade"]
        for name, measure in known.items():
            if only and name not in only:
                continue
            self.operator.tell(f"measure: {name}")
            try:
                await measure()
            except Exception as error:
                # One measure that cannot be taken must not hide the others.
                self.rows.append((name, "the measure ends", f"{type(error).__name__}: {error}", ["it did not end"]))
            try:
                await self.operator.heal()
            except Exception as error:
                self.rows.append((f"{name}, heal", "the fleet is whole again", str(error), ["it was not"]))
                break
        return self.rows

    async def under_load(self, fault):
        """Loads, has the fault, loads. :returns: the start, what the fault returned, and who was accepted wrongly."""
        await asyncio.sleep(BASELINE)
        began = time.monotonic()
        result = await fault()
        await asyncio.sleep(SETTLED + AFTER)
        violations = len(self.load.violations)
        tried = await self.load.sweep(since=began - 30)
        return began, result, tried, len(self.load.violations) - violations

    def note(self, name, asked, began, allowed, tried, violations, untouched, more=()):
        windows = self.load.log.windows(began)
        late = [age for when, age, _ in self.load.late if when >= began]
        lost = [ago for when, ago in self.load.lost if when >= began]
        wrong = judge(windows, [(row[0], row[2]) for row in self.load.log.rows if row[0] >= began and row[3] == "503"],
                      allowed, untouched)
        # These have a line of their own: an access token may live for access_ttl.
        wrong = [one for one in wrong if "× accepted" not in one] + list(more)
        for instance in self.fleet.instances:
            unused = [(when - began, age) for when, address, age in self.load.copies_unused
                      if when >= began and address == instance.address]
            if unused:
                when, ages = [row[0] for row in unused], [row[1] for row in unused]
                wrong.append(f"{instance.name} did not use {len(unused)} copies, {min(ages):.1f} to {max(ages):.1f} s old, "
                             f"{min(when):.2f} to {max(when):.2f} s after the fault")
        if violations:
            wrong.append(f"{violations} revoked sessions accepted beyond the bound")
        parts = [f"{kind} {window.outcomes['ok']}" + (f" (503: {window.outcomes['503']})" if window.outcomes["503"] else "")
                 for kind, window in sorted(windows.items()) if kind not in ("idle",)]
        times = ", ".join(f"{end - start:.1f} s" for start, end in allowed if end < float("inf"))
        seen = (f"{', '.join(parts)}; 503 allowed for {times or 'no time'}; {tried} revoked tried, {len(late)} accepted"
                + (f" up to {max(late):.1f} s after" if late else "")
                + (f"; logins lost {len(lost)}, opened {', '.join(f'{one:+.1f}' for one in sorted(lost)[:12])} s from the fault"
                   if lost else ""))
        self.rows.append((f"{self.fleet.topology}: {name}", asked, seen, wrong))
        self.operator.tell(table(self.rows[-1:]))

    async def kill(self):
        began, fault, tried, violations = await self.under_load(lambda: self.operator.kill(1))
        self.note("master killed", "direct, cached: 0 failed; others only 503 with Retry-After, until the failover and 2 s",
                  began, [(fault[0], fault[1] + SETTLED)], tried, violations, ("direct", "cached"))

    async def partition(self):
        began, fault, tried, violations = await self.under_load(lambda: self.operator.partition(PARTITION, 1))
        self.note("master stopped for 10 s", "as above; nothing is accepted from the old master; revoked sessions stay so",
                  began, [(fault[0], fault[1] + SETTLED)], tried, violations, ("direct", "cached"))

    async def reshard(self):
        began, moved, tried, violations = await self.under_load(lambda: self.operator.reshard(SLOTS))
        every = tuple(self.load.log.windows(0.0))
        more = [] if moved[0] == SLOTS else [f"only {moved[0]} slots were moved"]
        self.note(f"{moved[0]} slots with {moved[1]} keys moved", "0 failed, no 503", began, [], tried, violations, every, more)

    async def failovers(self):
        def fault(number, shard):
            # Planned and unplanned ones in turn.
            return self.operator.failover(shard) if number % 2 else self.operator.kill(shard)
        await self.in_a_row(f"{FAILOVERS} failovers", FAILOVERS, fault)

    async def partitions(self):
        await self.in_a_row(f"{PARTITIONS} partitions of {SHORT_PARTITION} s", PARTITIONS,
                            lambda number, shard: self.operator.partition(SHORT_PARTITION, shard))

    async def reshards(self):
        async def fault(number, shard):
            # There and back.
            moved = await self.operator.reshard(FEW_SLOTS, *((2, 1) if number % 2 else (1, 2)))
            if moved[0] != FEW_SLOTS:
                raise Failed(f"only {moved[0]} slots were moved")
        every = tuple(self.load.log.windows(0.0))
        await self.in_a_row(f"{RESHARDS} times {FEW_SLOTS} slots moved", RESHARDS, fault, every)

    async def in_a_row(self, name, count, fault, untouched=("direct", "cached")):
        """The same fault, or one like it, several times.

        :param fault: called with its number and a shard; returns when it began and ended, or None where no 503 is right.
        """
        await asyncio.sleep(BASELINE)
        before = [one.resources for one in self.fleet.instances]
        began, allowed = time.monotonic(), []
        for number in range(count):
            times = await fault(number, number % self.fleet.store.shards + 1)
            if times:
                allowed.append((times[0], times[1] + SETTLED))
            await asyncio.sleep(SETTLED + 1)
            await self.operator.heal()
        await asyncio.sleep(AFTER)
        after = [one.resources for one in self.fleet.instances]
        violations = len(self.load.violations)
        tried = await self.load.sweep()
        wrong = [f"{one.name}: {text}" for one, old, new in zip(self.fleet.instances, before, after) for text in grown(old, new)]
        asked = "connections, descriptors and memory as before; every revocation held" + ("" if allowed else "; 0 failed, no 503")
        self.note(name, asked, began, allowed, tried, len(self.load.violations) - violations, untouched, wrong)
        held = [f"{one.name}: {old} before, {new} after" for one, old, new in zip(self.fleet.instances, before, after)]
        self.operator.tell("\n".join(held))
        self.rows[-1] = (*self.rows[-1][:2], self.rows[-1][2] + "; " + "; ".join(held), self.rows[-1][3])

    async def undisturbed(self, name, change):
        """A change that an operator makes in working hours: nobody notices."""
        began, _, tried, violations = await self.under_load(change)
        every = tuple(self.load.log.windows(0.0))
        self.note(name, "0 failed, no 503", began, [], tried, violations, every)

    async def rotate(self):
        await self.undisturbed("key of the seal changed", self.operator.rotate)

    async def upgrade(self):
        await self.undisturbed("gateways upgraded one by one", lambda: self.operator.upgrade(self.newer))

    async def promote(self):
        began, fault, tried, violations = await self.under_load(lambda: self.operator.promote(True))
        untouched = tuple(kind for kind in self.load.log.windows(0.0) if not kind.startswith("login"))
        self.note("PostgreSQL's primary stopped, replica promoted", "only logins get 503, until the promotion and 2 s", began,
                  [(fault[0], fault[1] + SETTLED)], tried, violations, untouched)
