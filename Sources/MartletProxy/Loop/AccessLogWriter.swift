internal import MartletCore

/// Writes the access log of one loop, in the format that its sink has.
struct AccessLogWriter: ~Copyable {
    private let sink: any AccessLogging
    private var format: AccessFormat
    /// Counts configurations and log formats: formatted texts are cached under it.
    private(set) var epoch = 0
    private var formatter: AccessLineFormatter

    init(_ sink: any AccessLogging) {
        self.sink = sink
        format = sink.format
        formatter = AccessLineFormatter(instanceID: sink.instanceID)
    }

    /// Whether all records were handed over.
    var isEmpty: Bool { formatter.isEmpty }

    /// The indices in keys have a new meaning.
    mutating func configurationChanged() { epoch += 1 }

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
}
