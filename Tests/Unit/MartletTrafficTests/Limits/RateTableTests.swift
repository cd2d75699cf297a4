import Dispatch
import MartletTesting
import MartletTraffic
import Synchronization
import Testing

@Suite struct RateTableTests {
    private static let second: Int64 = 1_000_000_000

    private func key(_ number: Int) -> RateKey {
        var builder = RateKeyBuilder()
        builder.add(hash: number)
        return builder.build()
    }

    @Test func `each key has its own bucket`() {
        let table = RateTable(entries: 1_000)
        let rate = TokenRate(count: 1, burst: 2)
        for number in 0..<100 {
            #expect(table.take(key(number), rate, at: 0).remaining(rate) == 1)
            #expect(table.take(key(number), rate, at: 0).isAllowed)
        }
        for number in 0..<100 {
            #expect(!table.take(key(number), rate, at: 0).isAllowed)
            #expect(table.take(key(number), rate, at: Self.second).isAllowed)
        }
    }

    @Test func `a token that is given back can be taken again, and an unknown key has none to give`() {
        let table = RateTable(entries: 16)
        let rate = TokenRate(count: 1, burst: 1)
        table.giveBack(key(1), rate)
        #expect(table.take(key(1), rate, at: 0).isAllowed)
        table.giveBack(key(1), rate)
        #expect(table.take(key(1), rate, at: 0).isAllowed)
        #expect(!table.take(key(1), rate, at: 0).isAllowed)
    }

    @Test func `full buckets give way first`() {
        let table = RateTable(entries: 1_000)
        let rate = TokenRate(count: 1, burst: 1)
        // Half of the slots are used at the end, the other half became full before that.
        for number in 0..<400 { _ = table.take(key(-1 - number), rate, at: 0) }
        for number in 0..<400 { #expect(table.take(key(number), rate, at: 100 * Self.second).isAllowed) }
        for number in 0..<400 { #expect(!table.take(key(number), rate, at: 100 * Self.second).isAllowed) }
    }

    @Test func `a limited key stays limited in a flood of other keys`() {
        let table = RateTable(entries: 1_000)
        let rate = TokenRate(count: 10, burst: 10)
        let hot = key(-1)
        var allowed = 0
        for _ in 0..<100 where table.take(hot, rate, at: 0).isAllowed { allowed += 1 }
        // Four times as many keys as there are buckets, all in the same moment.
        for number in 0..<4_000 {
            _ = table.take(key(number), rate, at: 0)
            if table.take(hot, rate, at: 0).isAllowed { allowed += 1 }
        }
        #expect(allowed == 10)
        // Over ten seconds of such floods: its rate.
        for number in 0..<40_000 {
            let now = Int64(number) * 250_000
            _ = table.take(key(number), rate, at: now)
            if table.take(hot, rate, at: now).isAllowed { allowed += 1 }
        }
        #expect((100...121).contains(allowed), "\(allowed)")
    }

    @Test func `a flood of a hundred times the table gains a key no more than a token per takeover`() {
        let table = RateTable(entries: 160)
        let rate = TokenRate(count: 1, perSeconds: 3600, burst: 10)
        let hot = key(-1)
        var allowed = 0
        for _ in 0..<100 where table.take(hot, rate, at: 0).isAllowed { allowed += 1 }
        #expect(allowed == 10)
        for number in 0..<16_000 {
            _ = table.take(key(number), rate, at: 0)
            if table.take(hot, rate, at: 0).isAllowed { allowed += 1 }
        }
        // To take over its slot, each of the other 15 has to be taken over before.
        #expect(allowed <= 10 + 16_000 / 16, "\(allowed)")
    }

    @Test func `a newcomer gets its first token in any flood, and is limited from then on`() {
        let table = RateTable(entries: 160)
        let rate = TokenRate(count: 1, burst: 5)
        for number in 0..<20_000 { #expect(table.take(key(number), rate, at: 0).isAllowed) }
        var allowed = 0
        for _ in 0..<20 where table.take(key(-5), rate, at: 0).isAllowed { allowed += 1 }
        #expect((1...5).contains(allowed))
    }

    @Test func `after a flood every key has its rate again`() {
        let table = RateTable(entries: 160)
        let rate = TokenRate(count: 10, burst: 5)
        for number in 0..<20_000 { _ = table.take(key(number), rate, at: 0) }
        for number in 0..<20 {
            for _ in 0..<5 { #expect(table.take(key(-1 - number), rate, at: Self.second).isAllowed) }
        }
    }

    @Test func `half a table of keys in use disturbs none of them`() {
        let table = RateTable(entries: 10_000)
        let rate = TokenRate(count: 1, perSeconds: 60, burst: 3)
        for _ in 0..<3 { for number in 0..<5_000 { #expect(table.take(key(number), rate, at: 0).isAllowed) } }
        var early = 0
        for number in 0..<5_000 where table.take(key(number), rate, at: 0).isAllowed { early += 1 }
        #expect(early == 0)
    }

    @Test func `eight threads that ask for one key get its burst`() {
        let table = RateTable(entries: 100)
        let rate = TokenRate(count: 1, perSeconds: 3600, burst: 10_000)
        let allowed = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            var mine = 0
            for _ in 0..<20_000 where table.take(key(1), rate, at: 0).isAllowed { mine += 1 }
            allowed.add(mine, ordering: .relaxed)
        }
        // Each of them may have been the first one.
        #expect((10_000...10_008).contains(allowed.load(ordering: .relaxed)))
    }

    @Test func `eight threads with many keys stay within a tenth`() {
        let table = RateTable(entries: 2_000)
        let rate = TokenRate(count: 1, perSeconds: 3600, burst: 100)
        let allowed = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var mine = 0
            for round in 0..<50 {
                for number in 0..<500 where table.take(key((number * 7 + thread * 31) % 500), rate, at: 0).isAllowed {
                    mine += 1
                }
                if round % 10 == 9 { table.giveBack(key(-1 - thread), rate) }
            }
            allowed.add(mine, ordering: .relaxed)
        }
        let total = allowed.load(ordering: .relaxed)
        #expect(total >= 50_000 && total <= 55_000, "\(total)")
    }

    @Test func `counts concurrency, and never beyond the maximum`() {
        let counter = ConcurrencyCounter()
        #expect(counter.enter(maximum: 2) && counter.enter(maximum: 2))
        #expect(!counter.enter(maximum: 2) && counter.current == 2)
        counter.leave()
        #expect(counter.enter(maximum: 2) && counter.current == 2)
        // A reload may lower it.
        #expect(!counter.enter(maximum: 1) && counter.current == 2)
    }
}
