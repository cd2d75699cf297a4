internal import MartletCore
internal import MartletJSON
internal import MartletReports
private import Synchronization

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
struct EventReaders: Sendable {
    /// How many requests a reader gets in a second.
    static let perSecond = 100
    /// How many lines are written in a second to be compared with the filters of readers.
    static let examinedPerSecond = 5000
    static let limit = 100
    /// Between comments, which show that the connection is alive.
    static let commentInterval = 15

    private struct Reader {
        let filter: EventFilter
        let send: @Sendable ([UInt8]) -> Void
        var sent = 0
        var dropped = 0
    }

    private var readers: [UInt64: Reader] = [:]
    private var last: UInt64 = 0
    private var examined = 0
    private var missed = 0
    private var seconds = 0

    var isEmpty: Bool { readers.isEmpty }

    /// Adds a reader.
    /// - Returns: its number; `nil` if there are too many.
    mutating func add(_ filter: EventFilter, _ send: @escaping @Sendable ([UInt8]) -> Void) -> UInt64? {
        guard readers.count < Self.limit else { return nil }
        last += 1
        readers[last] = Reader(filter: filter, send: send)
        return last
    }

    mutating func remove(_ number: UInt64) { readers[number] = nil }

    /// Whether the line of another request is wanted in this second.
    mutating func wantsLine() -> Bool {
        let isFiltered = readers.values.contains { !$0.filter.isEmpty }
        guard examined < (isFiltered ? Self.examinedPerSecond : Self.perSecond) else {
            missed += 1
            return false
        }
        examined += 1
        return true
    }

    /// Passes a line on to the readers that want it.
    mutating func received(_ line: [UInt8]) {
        let event = Array("data: ".utf8) + line.filter { $0 != 0x0A && $0 != 0x0D } + [0x0A, 0x0A]
        for (number, reader) in readers where reader.filter.accepts(line) {
            if reader.sent < Self.perSecond {
                readers[number]?.sent += 1
                reader.send(event)
            } else {
                readers[number]?.dropped += 1
            }
        }
    }

    /// A second has passed: says what was dropped, and every 15 s that the connection is alive.
    mutating func secondPassed() {
        seconds += 1
        for (number, reader) in readers {
            let dropped = reader.dropped + missed
            if dropped > 0 { reader.send(Array("event: dropped\ndata: {\"count\":\(dropped)}\n\n".utf8)) }
            if seconds % Self.commentInterval == 0 { reader.send(Array(":\n\n".utf8)) }
            readers[number]?.sent = 0
            readers[number]?.dropped = 0
        }
        (examined, missed) = (0, 0)
    }
}

/// Requests as they finish, for the readers of `GET /events`.
final class RequestEvents: RequestWatching, Sendable {
    /// How many events wait for a reader whose connection is slow; more are dropped.
    private static let waiting = 256

    private let readers = Mutex(EventReaders())
    /// Has the loops show finished requests, or not any more.
    private let watch: @Sendable ((any RequestWatching)?) -> Void

    init(_ watch: @escaping @Sendable ((any RequestWatching)?) -> Void) { self.watch = watch }

    /// The events for another reader, until its connection ends; `nil` if there are too many.
    func open(_ filter: EventFilter) -> AsyncStream<[UInt8]>? {
        let (stream, continuation) = AsyncStream.makeStream(
            of: [UInt8].self, bufferingPolicy: .bufferingOldest(Self.waiting))
        let (number, isFirst) = readers.withLock { readers in
            let isFirst = readers.isEmpty
            return (readers.add(filter) { continuation.yield($0) }, isFirst)
        }
        guard let number else { return nil }
        continuation.onTermination = { [weak self] _ in self?.close(number) }
        if isFirst {
            watch(self)
            Task { [weak self] in await self?.countSeconds() }
        }
        continuation.yield(Array(":\n\n".utf8))
        return stream
    }

    func wantsLine() -> Bool { readers.withLock { $0.wantsLine() } }

    func finished(_ line: [UInt8]) { readers.withLock { $0.received(line) } }

    private func close(_ number: UInt64) { readers.withLock { $0.remove(number) } }

    private func countSeconds() async {
        while true {
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            let isEmpty = readers.withLock { readers in
                readers.secondPassed()
                return readers.isEmpty
            }
            guard isEmpty else { continue }
            watch(nil)
            // A reader that came in between starts it again.
            if readers.withLock({ $0.isEmpty }) { return }
            watch(self)
        }
    }
}
