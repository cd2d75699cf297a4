import MartletResponder
import MartletTesting
import Synchronization
import Testing

@testable import MartletAdmin

@Suite struct `Events of requests` {
    private static func line(_ route: String) -> [UInt8] { Array("{\"route\":\"\(route)\"}\n".utf8) }

    @Test func `go to the readers that want them, a hundred a second to each`() {
        var readers = EventReaders<Int>()
        readers.add(1, EventFilter([]), 1)
        readers.add(2, EventFilter([("route", "b")]), 2)
        let first = readers.deliveries(of: Self.line("a"))
        #expect(first.map(\.destination) == [1])
        #expect(first.map { String(decoding: $0.event, as: UTF8.self) } == ["data: {\"route\":\"a\"}\n\n"])
        #expect(readers.deliveries(of: Self.line("b")).map(\.destination).sorted() == [1, 2])
        for _ in 2..<EventPace.perSecond { #expect(readers.deliveries(of: Self.line("a")).count == 1) }
        #expect(readers.deliveries(of: Self.line("a")).isEmpty)
        // A second later it is notified of what it has missed, and gets more.
        let notices = readers.secondPassed(missed: 3)
        #expect(
            Dictionary(
                uniqueKeysWithValues: notices.map { ($0.destination, String(decoding: $0.event, as: UTF8.self)) })
                == [1: "event: dropped\ndata: {\"count\":4}\n\n", 2: "event: dropped\ndata: {\"count\":3}\n\n"])
        #expect(readers.deliveries(of: Self.line("a")).count == 1)
        readers.remove(1)
        #expect(readers.deliveries(of: Self.line("a")).isEmpty && !readers.isEmpty)
    }

    @Test func `are shown to be possible every fifteen seconds`() {
        var readers = EventReaders<Int>()
        readers.add(1, EventFilter([]), 1)
        var seconds: [Int] = []
        for second in 1...30 where !readers.secondPassed(missed: 0).isEmpty { seconds.append(second) }
        #expect(seconds == [15, 30])
    }

    @Test func `have a hundred readers at most, of whom each that leaves makes room`() {
        var intake = EventIntake<Int>()
        var joined: [(number: UInt64?, isFirst: Bool)] = []
        for reader in 0..<EventPace.readers { joined.append(intake.join(EventFilter([]), reader)) }
        #expect(joined.map(\.isFirst) == [true] + Array(repeating: false, count: EventPace.readers - 1))
        #expect(intake.join(EventFilter([]), 0).number == nil)
        for _ in 0..<2 { intake.leave(joined[7].number ?? 0) }
        #expect(intake.join(EventFilter([]), 0).number == UInt64(EventPace.readers + 1))
        #expect(intake.join(EventFilter([]), 0).number == nil)
        #expect(intake.take().changes.count == EventPace.readers + 2)
    }

    @Test(arguments: [(0, EventPace.perSecond), (1, EventPace.examinedPerSecond)])
    func `are written no more often than readers can want them`(filters: Int, limit: Int) {
        var intake = EventIntake<Int>()
        _ = intake.join(EventFilter([("route", "a")].prefix(filters).map(\.self)), 0)
        var wanted: [Bool] = []
        for _ in 0...limit { wanted.append(intake.wantsLine()) }
        #expect(wanted == Array(repeating: true, count: limit) + [false])
        #expect(intake.secondPassed() == 1)
        let again = intake.wantsLine()
        #expect(again)
    }

    @Test func `wake the task once for all that wait, of which there are not more than a second's`() {
        var intake = EventIntake<Int>()
        let (first, second) = (intake.append([1]), intake.append([1]))
        #expect(first && !second)
        #expect(intake.take().lines == [[1], [1]])
        let isWoken = intake.append([2])
        #expect(isWoken)
        for _ in 1...EventPace.examinedPerSecond { _ = intake.append([3]) }
        #expect(intake.take().lines.count == EventPace.examinedPerSecond)
        #expect(intake.secondPassed() == 1)
    }

    @Test func `are watched for as long as there are readers, and again for the next one`() async throws {
        let watched = Mutex<[Bool]>([])
        let events = RequestEvents { watcher in watched.withLock { $0.append(watcher != nil) } }
        for round in 1...2 {
            var stream = events.open(EventFilter([]))?.makeAsyncIterator()
            _ = await stream?.next()
            try await eventually("watched") { watched.withLock { $0.count } == 2 * round - 1 }
            #expect(events.wantsLine())
            events.finished(Self.line("a"))
            let event = await stream?.next()
            #expect(event == Array("data: {\"route\":\"a\"}\n\n".utf8))
            stream = nil
            try await eventually("watched") { watched.withLock { $0.count } == 2 * round }
        }
        #expect(watched.withLock { $0 } == [true, false, true, false])
    }

    @Test func `go on while readers leave and requests finish at the same time`() async {
        let events = RequestEvents { _ in }
        let finishing = Task {
            var count = 0
            while !Task.isCancelled {
                if events.wantsLine() { events.finished(Self.line("a")) }
                count += 1
                if count % 64 == 0 { await Task.yield() }
            }
        }
        for _ in 0..<500 {
            guard let stream = events.open(EventFilter([])) else { continue }
            let reading = Task { for await _ in stream { await Task.yield() } }
            await Task.yield()
            reading.cancel()
            await reading.value
        }
        finishing.cancel()
        await finishing.value
        #expect(events.open(EventFilter([])) != nil)
    }
}
