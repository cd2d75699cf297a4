import MartletConfig
import MartletIO
import Testing

@testable import MartletDecisions
@testable import MartletProxy

private let millisecond: Int64 = 1_000_000
private let limit = 100 * millisecond

@Suite struct LoopLoadTests {
    /// Delays in milliseconds, one after the other.
    private static func load(_ delays: [Int64]) -> (load: LoopLoad, end: Int64) {
        var load = LoopLoad()
        var now: Int64 = 0
        for delay in delays {
            now += delay * millisecond
            load.waited(delay * millisecond, at: now, limit: limit)
        }
        return (load, now)
    }

    /// How many of a number of requests are admitted.
    private static func admitted(of count: Int, _ load: LoopLoad) -> Int {
        var load = load
        var admitted = 0
        for _ in 0..<count where load.admits() { admitted += 1 }
        return admitted
    }

    @Test(
        arguments: [
            ([], 1000), ([99, 99, 99], 1000), ([100, 100], 1000), ([101], 1000), ([101, 101], 80),
            ([101, 5, 101], 1000), ([500, 101], 80), ([101, 101, 101, 101], 80), ([101, 101, 5], 80),
            ([101, 101, 5, 101], 80), ([101, 101, 5, 101, 101], 40), ([101, 101, 5, 11], 80),
            ([101, 101, 5, 11, 11], 40),
            ([101, 101, 5, 11, 11, 5, 11], 40), ([101, 101, 5, 11, 11, 11], 35), ([101, 101, 5, 11, 11, 51], 20),
            ([101, 101, 11], 80),
        ] as [([Int64], Int)])
    func `two long delays in a row leave a small share, later ones shrink it`(_ delays: [Int64], _ share: Int) {
        let (load, _) = Self.load(delays)
        #expect(load.share == share && load.isOverloaded == (share < 1000))
        #expect(load.slowTurns == delays.filter { $0 > 100 }.count)
    }

    @Test func `what waits is rejected until the queue is short`() {
        #expect(Self.admitted(of: 1000, Self.load([]).load) == 1000)
        #expect(Self.admitted(of: 1000, Self.load([101, 101]).load) == LoopLoad.minimum)
        #expect(Self.admitted(of: 1000, Self.load([101, 101, 99, 11]).load) == LoopLoad.minimum)
        #expect(Self.admitted(of: 1000, Self.load([101, 101, 10]).load) == LoopLoad.start)
        #expect(Self.admitted(of: 25, Self.load([101, 101, 10]).load) == 2)
    }

    @Test func `what waited while the share was cut does not cut it again`() {
        let (cutLoad, cut) = Self.load([101, 101, 5, 20])
        var load = cutLoad
        func wait(_ delay: Int64, after passed: Int64) -> Int {
            load.waited(delay * millisecond, at: cut + passed * millisecond, limit: limit)
            return load.share
        }
        #expect(wait(20, after: 0) == 40)
        #expect(wait(20, after: 19) == 40)
        #expect(wait(20, after: 20) == 35)
    }

    @Test func `it never falls to nothing, and is whole again within three seconds`() {
        let (falling, end) = Self.load([101, 101, 5, 51, 51, 51])
        var load = falling
        #expect(load.share == LoopLoad.minimum)
        load.advance(to: end + 99 * millisecond, slept: 0)
        #expect(load.share == LoopLoad.minimum)
        load.advance(to: end + 100 * millisecond, slept: 0)
        #expect(load.share == 2 * LoopLoad.minimum)
        load.advance(to: end + 2900 * millisecond, slept: 0)
        #expect(load.share == LoopLoad.all && !load.isOverloaded && !load.isDraining)
        load.advance(to: .max, slept: 0)
        #expect(load.share == LoopLoad.all)
    }

    @Test func `a delay that changes something is recorded before its end`() {
        func tolerance(_ delays: [Int64], trial: Bool = false) -> Int64 {
            var (load, end) = Self.load(delays)
            if trial { load.advance(to: end + LoopLoad.trialIntervals.lowerBound, slept: 0) }
            return load.tolerance(limit)
        }
        #expect(tolerance([]) == limit && tolerance([101, 101]) == .max && tolerance([101, 101, 5]) == limit / 10)
        // Enough was taken before, so that not all is served again by then.
        #expect(tolerance([101, 101, 5, 51, 51, 51], trial: true) == limit)
    }

    @Test func `a share that was never too large doubles`() {
        var (load, end) = Self.load([101, 101, 5])
        var shares: [Int] = []
        for _ in 0..<4 {
            end += LoopLoad.growthInterval
            load.advance(to: end, slept: 0)
            shares.append(load.share)
        }
        #expect(shares == [160, 320, 640, 704])
    }

    @Test func `an idle loop has no queue`() {
        var (load, end) = Self.load([101, 101])
        load.advance(to: end + 9 * millisecond, slept: 9 * millisecond)
        #expect(load.isDraining)
        load.advance(to: end + 10 * millisecond, slept: 10 * millisecond)
        #expect(!load.isDraining && load.share == LoopLoad.start)
        end += 3_000 * millisecond
        load.advance(to: end, slept: 2_990 * millisecond)
        #expect(!load.isOverloaded)
    }

    @Test func `where turns are long without requests, some are served again after a second`() {
        let (load, _) = Self.load([101, 101] + [Int64](repeating: 100, count: 9))
        #expect(load.isDraining)
        let (later, _) = Self.load([101, 101] + [Int64](repeating: 100, count: 10))
        #expect(!later.isDraining && later.share == LoopLoad.start)
    }

    /// Requests that cost a tenth of a millisecond, or a hundredth if they are rejected. A turn takes 256 of them; where more
    /// wait, a probe waits behind them.
    private struct Simulation {
        private static let batch = 256

        private(set) var load = LoopLoad()
        /// Requests that were served.
        private(set) var served = 0
        /// How long each request waited and took, in milliseconds.
        private(set) var delays: [Int64] = []
        /// When the last request was rejected, in milliseconds.
        private(set) var lastRejection: Int64 = 0
        private var now: Int64 = 0
        private var lastEnd: Int64 = 0
        private var next: Int64 = 0
        private var probe: (sentAt: Int64, behind: Int64)?

        /// - Parameter gaps: the time between requests in microseconds, until so many milliseconds.
        init(_ gaps: [(gap: Int64, until: Int64)]) {
            for (gap, end) in gaps {
                while now < end * millisecond { turn(gap * 1000) }
            }
            delays.sort()
        }

        func delay(_ percent: Int) -> Int64 { delays[delays.count * percent / 100] }

        private mutating func turn(_ gap: Int64) {
            load.advance(to: now, slept: now - lastEnd)
            let start = now
            if let probe, next > probe.behind {
                load.waited(now - probe.sentAt, at: now, limit: limit)
                self.probe = nil
            }
            var count = 0
            while count < Self.batch, next <= start {
                serve(arrivedAt: next)
                next += gap
                count += 1
            }
            lastEnd = now
            guard count > 0 else {
                now += 10_000
                return
            }
            let waited = max(now - start, probe.map { now - $0.sentAt } ?? 0)
            if count == Self.batch, probe == nil { probe = (now, now) }
            if count < Self.batch || waited > load.tolerance(limit) { load.waited(waited, at: now, limit: limit) }
        }

        private mutating func serve(arrivedAt arrival: Int64) {
            if load.admits() {
                now += 100_000
                served += 1
            } else {
                now += 10_000
                lastRejection = now / millisecond
            }
            delays.append((now - arrival) / millisecond)
        }
    }

    @Test func `under a five-fold load most of what can be served is served, in time`() {
        let simulation = Simulation([(20, 20_000)])
        // Ten thousand a second without rejections; 44,400 rejections leave time for 5,560.
        #expect(simulation.served > 20 * 5_000, "\(simulation.served)")
        #expect(simulation.delay(50) <= 10 && simulation.delay(90) <= 20, "\(simulation.delay(90))")
        #expect(simulation.delay(99) <= 110, "\(simulation.delay(99))")
    }

    @Test func `a load that is served in time is served whole after an overload, however long its queue`() {
        // 500 requests at a time for 25 ms each: longer than a tenth of the limit, shorter than half of it.
        var (load, now) = Self.load([101, 101, 5, 25])
        for _ in 0..<500 where load.isOverloaded {
            load.advance(to: now, slept: 0)
            now += 25 * millisecond
            load.waited(25 * millisecond, at: now, limit: limit)
        }
        #expect(!load.isOverloaded)
        #expect(now < 8_000 * millisecond, "\(now)")
    }

    @Test(arguments: [(100, 55), (300, 55), (500, 120), (700, 120)] as [(Int64, Int64)])
    func `single delays have no share in the load`(_ every: Int64, _ length: Int64) {
        var (load, now) = Self.load([101, 101])
        var next = now
        while load.isOverloaded, now < 5_000 * millisecond {
            load.advance(to: now, slept: 0)
            let isLong = now >= next
            if isLong { next += every * millisecond }
            let delay = isLong ? length * millisecond : millisecond
            now += delay
            load.waited(delay, at: now, limit: limit)
        }
        #expect(!load.isOverloaded)
    }

    @Test func `what a turn takes without a queue is no queue`() {
        var load = LoopLoad()
        var now: Int64 = 0
        for delay in [2, 2, 1, 1, 1] as [Int64] {
            now += delay * millisecond
            load.waited(delay * millisecond, at: now, limit: millisecond)
        }
        #expect(load.isOverloaded && !load.isDraining)
        for _ in 0..<3_000 {
            now += millisecond
            load.advance(to: now, slept: 0)
            load.waited(millisecond * 6 / 10, at: now, limit: millisecond)
        }
        #expect(!load.isOverloaded)
    }

    @Test func `once the load is over, nothing is rejected after three seconds`() {
        let simulation = Simulation([(20, 10_000), (200, 20_000)])
        #expect(simulation.lastRejection > 10_000 && simulation.lastRejection < 13_000, "\(simulation.lastRejection)")
        #expect(!simulation.load.isOverloaded)
    }

    @Test func `a load below capacity is never rejected`() {
        let simulation = Simulation([(110, 20_000)])
        #expect(simulation.lastRejection == 0 && simulation.load.slowTurns == 0)
    }

    @Test(
        arguments: [
            (90, 100, 90, true), (89, 100, 90, false), (100, 100, 100, true), (nil, 100, 90, false),
            (90, nil, 90, false), (90, 100, nil, false), (1, 0, 90, false), (.max, .max, 90, true),
        ] as [(Int?, Int?, Int?, Bool)])
    func `a share of the memory is too much from that on`(
        _ resident: Int?, _ limit: Int?, _ percent: Int?, _ isOver: Bool
    ) {
        func scaled(_ value: Int?) -> Int? { value.map { $0 == .max ? .max : $0 * 1_000_000 } }
        #expect(
            MemoryPressure.isOver(resident: scaled(resident), limit: scaled(limit), percent: percent) == isOver)
    }

    @Test func `memory says when it changes`() {
        let memory = MemoryPressure()
        func read(_ resident: Int) -> Bool { memory.read(resident: resident, limit: 1_000_000, percent: 50) }
        #expect(!read(400_000) && !memory.isOver)
        #expect(!memory.shouldTrim(at: 0))
        #expect(read(600_000) && memory.isOver && !read(700_000) && memory.isOver)
        let trims = [0, 999_999_999, 1_000_000_000].map { memory.shouldTrim(at: $0) }
        #expect(trims == [true, false, true])
        #expect(!read(460_000), "five percent below it ends")
        #expect(read(440_000) && !memory.isOver)
        _ = read(600_000)
        memory.end()
        #expect(!memory.isOver)
    }

    @Test func `a loop of operators rejects nothing, and neither does one without the configuration`() throws {
        let memory = MemoryPressure()
        _ = memory.read(resident: 1_000_000, limit: 1_000_000, percent: 1)
        let poller = try Poller()
        var loop = try LoopOverload(OverloadConfiguration(), memory: memory, poller)
        loop.begin(at: 0, slept: false)
        let whileConfigured = (loop.isWatched, loop.isActive, loop.admits())
        #expect(whileConfigured == (true, true, false))
        try loop.adopt(nil, poller)
        let afterwards = (loop.isWatched, loop.isActive)
        #expect(afterwards == (false, false))
        let operators = try LoopOverload(OverloadConfiguration(), memory: nil, poller)
        let isWatched = operators.isWatched
        #expect(!isWatched)
    }

    /// The share after three turns of a length in milliseconds.
    private static func share(
        _ length: Int64, isPartial: Bool = false, behind: Int = 0, probe: Int64? = nil
    ) throws -> Int {
        let poller = try Poller()
        var loop = try LoopOverload(OverloadConfiguration(), memory: MemoryPressure(), poller)
        var now: Int64 = 0
        for _ in 0..<3 {
            loop.begin(at: now, slept: true)
            if behind > 0 { loop.isBehind(by: behind) }
            let end = now + length * millisecond
            loop.end(from: now, to: end, isPartial: isPartial)
            now = end
            if let probe {
                guard poller.wait(milliseconds: 0) == 1 else { return -1 }
                now += probe * millisecond
                loop.end(from: now - millisecond, to: now - millisecond, isPartial: true)
                loop.probeArrived(at: now)
            }
        }
        return loop.load.share
    }

    @Test func `delays are turns, longer where connections wait, and measured where a turn is not all`() throws {
        #expect(try Self.share(99) == 1000)
        #expect(try Self.share(101) == LoopLoad.start)
        // Eleven turns of ten milliseconds for the last connection in the queue.
        #expect(try Self.share(10, behind: 9) == 1000)
        #expect(try Self.share(10, behind: 10) == LoopLoad.start)
        #expect(try Self.share(1, behind: .max) == LoopLoad.start)
        #expect(try Self.share(1, isPartial: true) == 1000)
        #expect(try Self.share(1, isPartial: true, probe: 90) == 1000)
        #expect(try Self.share(1, isPartial: true, probe: 101) == LoopLoad.start)
    }

    @Test func `an overload closes connections that did nothing yet`() throws {
        let bench = try LoopBench { _ in }
        let (used, silent) = (bench.openClient(), bench.openClient())
        bench.run { $0.downstreams[used.downstream].reader.requests = 1 }
        bench.advance(milliseconds: 250)
        let memory = MemoryPressure()
        _ = memory.read(resident: 1_000_000, limit: 1_000_000, percent: 1)
        try bench.run { loop throws in
            loop.context.overload = try LoopOverload(OverloadConfiguration(), memory: memory, loop.context.poller)
            loop.context.overload.begin(at: loop.now, slept: false)
            OverloadControl.end(&loop, events: 1)
        }
        #expect(bench.isAlive(used.downstream) && !bench.isAlive(silent.downstream))
    }
}
