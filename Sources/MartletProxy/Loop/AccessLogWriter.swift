internal import MartletCore
internal import MartletDecisions

/// Writes the access log of one loop, in the format that its sink has.
struct AccessLogWriter: ~Copyable {
    private var sink: any AccessLogging
    /// The sink of configurations that name no other.
    private let commonSink: any AccessLogging
    private var format: AccessFormat
    /// Counts configurations and log formats: formatted texts are cached under it.
    private(set) var epoch = 0
    private var formatter: AccessLineFormatter
    /// What lines have and which are written; `nil` for the default. With one, no key is ever prepared.
    private(set) var plan: AccessPlan?
    /// Whether the plan needs ``notes``; kept beside it, because nothing retains a flag.
    private(set) var needsNotes = false
    var sampling = AccessSampling(seed: .random(in: .min ... .max))
    /// What the plan needs of requests in progress.
    var notes = AccessNotes()
    /// The addresses of listeners by their numbers, as far as lines had them.
    private var listeners: [Int32: [UInt8]] = [:]

    /// - Parameters:
    ///   - sink: of configurations that name no other.
    ///   - settings: of the first configuration.
    init(_ sink: any AccessLogging, _ settings: AccessLogSettings? = nil) {
        commonSink = sink
        self.sink = settings?.sink ?? sink
        plan = settings?.plan
        needsNotes = plan?.needsNotes ?? false
        format = self.sink.format
        formatter = AccessLineFormatter(instanceID: sink.instanceID)
    }

    /// Whether all records were handed over.
    var isEmpty: Bool { formatter.isEmpty }

    /// The indices in keys have a new meaning, and lines may go elsewhere.
    mutating func configurationChanged(_ settings: AccessLogSettings?) {
        formatter.flush(to: sink)
        sink = settings?.sink ?? commonSink
        plan = settings?.plan
        needsNotes = plan?.needsNotes ?? false
        if !needsNotes { notes.removeAll() }
        formatChanged()
    }

    /// The sink has changed its format.
    mutating func formatChanged() {
        epoch += 1
        format = sink.format
    }

    /// Hands over a batch that is large or old enough, or when the loop is idle.
    mutating func flush(now: Int64, isIdle: Bool) { formatter.flush(to: sink, now: now, isIdle: isIdle) }

    /// Whether the texts of a key are cached, so that ``append(_:_:)`` can write a record with it.
    @inline(__always)
    func isPrepared(for key: AccessKey) -> Bool { formatter.isPrepared(for: key) }

    /// Caches the texts of a key.
    mutating func prepare(
        _ key: AccessKey, route: [UInt8], reason: [UInt8], member: [UInt8] = [], condition: [UInt8] = [],
        provider: [UInt8], upstream: [UInt8]
    ) {
        formatter.prepare(
            key, route: route, reason: reason, member: member, condition: condition, provider: provider,
            upstream: upstream, format: format)
    }

    /// Writes one record with the texts of a prepared key.
    @inline(__always)
    mutating func append(_ line: AccessLine, _ request: inout RequestTexts, _ key: AccessKey) {
        formatter.append(line, &request, key, format: format)
    }

    /// Writes one record with the fields of the plan.
    mutating func append(_ line: SelectedLine, _ request: inout RequestTexts, _ plan: AccessPlan) {
        formatter.append(line, &request, plan, format: format)
    }

    /// The address of a listener.
    /// - Parameter find: looks it up the first time.
    mutating func address(ofListener id: Int32, _ find: () -> [UInt8]) -> [UInt8] {
        if let known = listeners[id] { return known }
        let found = find()
        listeners[id] = found
        return found
    }
}
