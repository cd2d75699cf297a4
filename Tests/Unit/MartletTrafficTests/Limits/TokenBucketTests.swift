import MartletTraffic
import Testing

@Suite struct TokenBucketTests {
    private static let second: Int64 = 1_000_000_000

    @Test func `gives the burst, then one token for each interval`() {
        let rate = TokenRate(count: 10, burst: 20)
        var bucket = TokenBucket()
        var now = 5 * Self.second
        var allowed = 0
        for _ in 0..<50 where bucket.take(rate, at: now).isAllowed { allowed += 1 }
        #expect(allowed == 20)
        now += rate.interval - 1
        #expect(!bucket.take(rate, at: now).isAllowed)
        now += 1
        #expect(bucket.take(rate, at: now).isAllowed)
        #expect(!bucket.take(rate, at: now).isAllowed)
    }

    @Test func `passes no more than burst plus rate in any window`() {
        let rate = TokenRate(count: 100, burst: 50)
        var bucket = TokenBucket()
        var times: [Int64] = []
        // 1,000 requests per second for 10 s.
        for step in 0..<10_000 where bucket.take(rate, at: Int64(step) * 1_000_000).isAllowed {
            times.append(Int64(step) * 1_000_000)
        }
        #expect((1_040...1_051).contains(times.count))
        for first in times.indices {
            let last = times.lastIndex { $0 <= times[first] + Self.second } ?? first
            #expect(last - first + 1 <= 151)
        }
    }

    @Test(arguments: [
        (TokenRate(count: 100, burst: 200), 199, 1, 0),
        (TokenRate(count: 1, perSeconds: 60, burst: 1), 0, 60, 60),
        (TokenRate(count: 30, perSeconds: 60, burst: 30), 29, 2, 0),
        (TokenRate(count: 1, perSeconds: 3600, burst: 2), 1, 3600, 0),
    ])
    func `says what is left and when it is back`(_ rate: TokenRate, _ left: Int, _ reset: Int, _ wait: Int64) {
        var bucket = TokenBucket()
        let decision = bucket.take(rate, at: 7 * Self.second)
        #expect(decision.isAllowed && decision.remaining(rate) == left && decision.reset(rate) == reset)
        #expect(decision.wait(rate) == wait * Self.second)
    }

    @Test func `a rejection says when to come back, and coming back then is allowed`() {
        let rate = TokenRate(count: 3, perSeconds: 60, burst: 2)
        var bucket = TokenBucket()
        #expect(bucket.take(rate, at: 0).isAllowed)
        #expect(bucket.take(rate, at: 0).isAllowed)
        let refused = bucket.take(rate, at: Self.second)
        #expect(!refused.isAllowed && refused.remaining(rate) == 0)
        #expect(refused.wait(rate) == 19 * Self.second)
        #expect(refused.retryAfter(rate) == 19 && refused.reset(rate) == 19)
        var early = bucket
        #expect(!early.take(rate, at: 20 * Self.second - 1).isAllowed)
        #expect(bucket.take(rate, at: 20 * Self.second).isAllowed)
    }

    @Test func `a token that is given back can be taken again`() {
        let rate = TokenRate(count: 1, burst: 3)
        var bucket = TokenBucket()
        for _ in 0..<3 { _ = bucket.take(rate, at: Self.second) }
        #expect(!bucket.take(rate, at: Self.second).isAllowed)
        bucket.giveBack(rate)
        #expect(bucket.take(rate, at: Self.second).isAllowed)
        #expect(!bucket.take(rate, at: Self.second).isAllowed)
        var unused = TokenBucket()
        unused.giveBack(rate)
        #expect(unused == TokenBucket())
    }

    @Test(arguments: [Int64.max, Int64.max - 1, Int64.max / 2, 0, 1])
    func `extreme times and rates do not overflow`(_ now: Int64) {
        for rate in [
            TokenRate(count: .max, perSeconds: 1, burst: .max), TokenRate(count: 1, perSeconds: .max, burst: .max),
            TokenRate(count: 0, perSeconds: 0, burst: 0), TokenRate(count: .min, perSeconds: .min, burst: .min),
        ] {
            for fullAt in [Int64.max, Int64.max / 2, 0, now] {
                var bucket = TokenBucket(fullAt: fullAt)
                let decision = bucket.take(rate, at: now)
                #expect(decision.missing >= 0 && decision.missing <= rate.capacity)
                #expect(decision.remaining(rate) >= 0 && decision.retryAfter(rate) >= 1 && decision.reset(rate) >= 1)
                bucket.giveBack(rate)
                bucket.leaveOne(rate, at: now)
                #expect(bucket.fullAt >= 0)
            }
        }
    }

    @Test func `a smaller burst holds at the next token`() {
        var bucket = TokenBucket()
        let former = TokenRate(count: 1, burst: 1_000)
        for _ in 0..<1_000 { _ = bucket.take(former, at: 0) }
        let next = TokenRate(count: 1, burst: 5)
        #expect(bucket.take(next, at: 0).wait(next) == Self.second)
    }
}
