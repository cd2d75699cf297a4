internal import MartletCore
internal import MartletJSON
internal import MartletResponder

/// Which requests a reader of `GET /events` wants: those whose access lines have these members.
struct EventFilter: Sendable, Equatable {
    static let names = ["route", "subject", "reason"]

    /// Parts of a line, of which it has to have one of each list: within a string its quotes are escaped, so that only a
    /// member can have them.
    private let members: [[[UInt8]]]

    /// - Parameters:
    ///   - wanted: the values by the names of the members.
    ///   - loggedSubject: a subject as access lines name it, which is wanted as well.
    init(_ wanted: [(name: String, value: String)], _ loggedSubject: (String) -> String? = { _ in nil }) {
        members = wanted.map { name, value in
            var values = [value]
            if name == "subject", let logged = loggedSubject(value), logged != value { values.append(logged) }
            return values.map { Array("\"\(name)\":".utf8) + JSON.write(JSONValue.string($0)) }
        }
    }

    var isEmpty: Bool { members.isEmpty }

    func accepts(_ line: [UInt8]) -> Bool {
        members.allSatisfy { values in values.contains { Self.has(line, $0) } }
    }

    private static func has(_ line: [UInt8], _ member: [UInt8]) -> Bool {
        guard line.count >= member.count, let first = member.first else { return false }
        for start in 0...(line.count - member.count) where line[start] == first {
            if line[start..<start + member.count].elementsEqual(member) { return true }
        }
        return false
    }
}

/// The readers of finished requests, and how much each of them gets: a value without I/O, to which time is passed.
struct EventReaders<Destination: Sendable>: Sendable {
    /// Bytes for one reader.
    struct Delivery: Sendable {
        let destination: Destination
        let event: [UInt8]
    }

    private struct Reader: Sendable {
        let filter: EventFilter
        let destination: Destination
        var sent = 0
        var dropped = 0
    }

    private var readers: [UInt64: Reader] = [:]
    private var seconds = 0

    var isEmpty: Bool { readers.isEmpty }

    mutating func add(_ number: UInt64, _ filter: EventFilter, _ destination: Destination) {
        readers[number] = Reader(filter: filter, destination: destination)
    }

    mutating func remove(_ number: UInt64) { readers[number] = nil }

    /// What the readers get of a line: those that want it, as long as they have not had enough in this second.
    mutating func deliveries(of line: [UInt8]) -> [Delivery] {
        let event = Array("data: ".utf8) + line.filter { $0 != 0x0A && $0 != 0x0D } + [0x0A, 0x0A]
        var deliveries: [Delivery] = []
        for (number, reader) in readers where reader.filter.accepts(line) {
            if reader.sent < EventPace.perSecond {
                readers[number]?.sent += 1
                deliveries.append(Delivery(destination: reader.destination, event: event))
            } else {
                readers[number]?.dropped += 1
            }
        }
        return deliveries
    }

    /// What the readers get at the end of a second: what was dropped, and every 15 s that the connection is alive.
    /// - Parameter missed: how many requests no one has received.
    mutating func secondPassed(missed: Int) -> [Delivery] {
        seconds += 1
        var deliveries: [Delivery] = []
        for (number, reader) in readers {
            let dropped = reader.dropped + missed
            var event: [UInt8] = []
            if dropped > 0 { event += Array("event: dropped\ndata: {\"count\":\(dropped)}\n\n".utf8) }
            if seconds % EventPace.commentInterval == 0 { event += Array(":\n\n".utf8) }
            if !event.isEmpty { deliveries.append(Delivery(destination: reader.destination, event: event)) }
            readers[number]?.sent = 0
            readers[number]?.dropped = 0
        }
        return deliveries
    }
}

/// How many requests are shown, and to how many readers.
enum EventPace {
    static let readers = SharedBound.eventReaders.total
    /// How many requests a reader gets in a second.
    static let perSecond = 100
    /// How many lines are written in a second to be compared with the filters of readers.
    static let examinedPerSecond = 5000
    /// Between comments, which show that the connection is alive.
    static let commentInterval = 15
    /// How many events wait for a reader whose connection is slow; more are dropped.
    static let waiting = 256
}

/// What the loops and the connections of readers leave for the task that serves the readers: lines of finished
/// requests, as many as can be wanted in a second, and readers that come and go.
struct EventIntake<Destination: Sendable>: Sendable {
    enum Change: Sendable {
        case joined(UInt64, EventFilter, Destination)
        case left(UInt64)
    }

    private var lines: [[UInt8]] = []
    private var changes: [Change] = []
    private var last: UInt64 = 0
    /// Whether each reader has a filter.
    private var present: [UInt64: Bool] = [:]
    private var filtered = 0
    private var examined = 0
    private var missed = 0
    /// Whether the task has been woken for what waits.
    private var isWoken = false
    private var isServing = false

    /// Adds a reader.
    /// - Returns: its number, `nil` if there are too many; and whether the task has to be started.
    mutating func join(_ filter: EventFilter, _ destination: Destination) -> (number: UInt64?, isFirst: Bool) {
        guard present.count < EventPace.readers else { return (nil, false) }
        last += 1
        present[last] = !filter.isEmpty
        if !filter.isEmpty { filtered += 1 }
        changes.append(.joined(last, filter, destination))
        defer { isServing = true }
        return (last, !isServing)
    }

    mutating func leave(_ number: UInt64) {
        guard let isFiltered = present.removeValue(forKey: number) else { return }
        if isFiltered { filtered -= 1 }
        changes.append(.left(number))
    }

    /// Whether the line of another request is wanted in this second.
    mutating func wantsLine() -> Bool {
        guard examined < (filtered > 0 ? EventPace.examinedPerSecond : EventPace.perSecond) else {
            missed += 1
            return false
        }
        examined += 1
        return true
    }

    /// Keeps a line for the task.
    /// - Returns: whether the task has to be woken.
    mutating func append(_ line: [UInt8]) -> Bool {
        // Loops go on asking for a moment when there are no readers any more, or while the task has no thread.
        guard lines.count < EventPace.examinedPerSecond else {
            missed += 1
            return false
        }
        lines.append(line)
        defer { isWoken = true }
        return !isWoken
    }

    /// Removes and returns all that waits.
    mutating func take() -> (changes: [Change], lines: [[UInt8]]) {
        defer { (changes, lines, isWoken) = ([], [], false) }
        return (changes, lines)
    }

    /// Begins another second, and returns how many requests no one was shown in the one before.
    mutating func secondPassed() -> Int {
        defer { (examined, missed) = (0, 0) }
        return missed
    }

    /// Whether the task has to go on for readers that have come in the meantime.
    mutating func goesOn() -> Bool {
        isServing = !present.isEmpty
        return isServing
    }
}

/// Requests as they finish, for the readers of `GET /events`.
///
/// The loops leave lines and go on. One task compares them with what readers want and passes them on, so that nothing
/// that a reader does, nor its end, is in the way of a request.
final class RequestEvents: RequestWatching, Sendable {
    private typealias Stream = AsyncStream<[UInt8]>

    private let intake = Lock(EventIntake<Stream.Continuation>())
    private let wakeup = Wakeup()
    /// Starts or stops showing finished requests to a watcher.
    private let watch: @Sendable ((any RequestWatching)?) -> Void

    init(_ watch: @escaping @Sendable ((any RequestWatching)?) -> Void) { self.watch = watch }

    /// The events for another reader, until its connection ends; `nil` if there are too many.
    func open(_ filter: EventFilter) -> AsyncStream<[UInt8]>? {
        let (stream, continuation) = Stream.makeStream(bufferingPolicy: .bufferingOldest(EventPace.waiting))
        let (number, isFirst) = intake.withLock { $0.join(filter, continuation) }
        guard let number else { return nil }
        continuation.onTermination = { [weak self] _ in self?.close(number) }
        continuation.yield(Array(":\n\n".utf8))
        if isFirst { Task { await self.serve() } }
        return stream
    }

    func wantsLine() -> Bool { intake.withLock { $0.wantsLine() } }

    func finished(_ line: [UInt8]) {
        if intake.withLock({ $0.append(line) }) { wakeup.signal() }
    }

    /// Called while a task is being cancelled, by whichever thread does so: it takes the lock, and calls nothing.
    private func close(_ number: UInt64) { intake.withLock { $0.leave(number) } }

    /// Serves readers until there is none.
    private func serve() async {
        repeat {
            watch(self)
            await serveReaders()
            watch(nil)
        } while intake.withLock { $0.goesOn() }
    }

    private func serveReaders() async {
        let clock = ContinuousClock()
        var readers = EventReaders<Stream.Continuation>()
        var second = clock.now + .seconds(1)
        while true {
            let (changes, lines) = intake.withLock { $0.take() }
            for change in changes {
                switch change {
                case .joined(let number, let filter, let destination): readers.add(number, filter, destination)
                case .left(let number): readers.remove(number)
                }
            }
            for line in lines { pass(readers.deliveries(of: line)) }
            if clock.now >= second {
                second = clock.now + .seconds(1)
                let missed = intake.withLock { $0.secondPassed() }
                pass(readers.secondPassed(missed: missed))
                if readers.isEmpty { return }
            }
            await wakeup.wait(atMost: clock.now.duration(to: second))
        }
    }

    private func pass(_ deliveries: [EventReaders<Stream.Continuation>.Delivery]) {
        for delivery in deliveries { delivery.destination.yield(delivery.event) }
    }
}
