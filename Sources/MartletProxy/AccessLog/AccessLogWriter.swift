internal import MartletCore
internal import MartletDecisions

/// Writes the access log of one loop, in the format that its sink has, and collects lines in batches.
struct AccessLogWriter: ~Copyable {
    /// A direct-mapped cache: a new key replaces the one in its slot.
    private struct Slot: ~Copyable {
        var key: AccessKey?
        var text = ByteBuffer()
    }

    private static let batchBytes = 64 * 1024
    private static let batchTime: Int64 = 50_000_000

    /// The sink of configurations that name no other.
    private let commonSink: any AccessLogging
    /// What lines have and which are written.
    private(set) var plan: AccessPlan
    private var sink: any AccessLogging
    private var format = AccessFormat.json
    // Those of the plan; kept beside it, because nothing retains a flag.
    private(set) var isSelective = false
    private(set) var needsNotes = false
    /// The columns with which lines begin, and their text in the second of `unixTime`.
    private var opening = AccessTemplate()
    private var second = ByteBuffer()
    private var unixTime = Int64.min
    /// The columns that lines with one key share, and their texts.
    private var shared = AccessTemplate()
    private var slots = InlineArray<64, Slot> { _ in Slot() }
    /// The columns before these, and those behind them.
    private var before = AccessTemplate()
    private var behind = AccessTemplate()
    private var lines = ByteBuffer(capacity: 96 * 1024)
    private var flushedAt: Int64 = 0
    var numbers = SampleNumbers(seed: .random(in: .min ... .max))
    /// Of the exchange whose line is written next.
    var facts = AccessFacts()
    /// The addresses of listeners by their numbers, as far as lines had them.
    private var listeners: [Int32: [UInt8]] = [:]

    /// - Parameters:
    ///   - sink: of configurations that name no other.
    ///   - plan: of the first configuration.
    init(_ sink: any AccessLogging, _ plan: AccessPlan = .standard) {
        commonSink = sink
        self.sink = sink
        self.plan = plan
        facts.instanceID = Array(sink.instanceID.utf8)
        adopt(plan)
    }

    /// Switches to the plan of a new configuration.
    mutating func adopt(_ plan: AccessPlan) {
        if !lines.isEmpty { sink.take(&lines) }
        self.plan = plan
        sink = plan.sink ?? commonSink
        isSelective = plan.isSelective
        needsNotes = plan.needsNotes
        reset()
    }

    /// Forgets every formatted text: the sink has changed its format, or indices have a new meaning.
    mutating func reset() {
        format = sink.format
        let columns = plan.columns(format)
        let first = columns.prefix { AccessColumn.opening.contains($0.field) }
        let second = columns[first.endIndex...].prefix { !AccessColumn.shared.contains($0.field) }
        let third = columns[second.endIndex...].prefix { AccessColumn.shared.contains($0.field) }
        opening.compile(first)
        before.compile(second)
        shared.compile(third)
        behind.compile(columns[third.endIndex...])
        unixTime = .min
        for slot in slots.indices { slots[slot].key = nil }
    }

    /// Whether all lines were handed over.
    var isEmpty: Bool { lines.isEmpty }

    /// Hands over a batch that is large or old enough, or when the loop is idle.
    mutating func flush(now: Int64, isIdle: Bool) {
        guard !lines.isEmpty else { return }
        guard isIdle || lines.count >= Self.batchBytes || now &- flushedAt >= Self.batchTime else { return }
        flushedAt = now
        sink.take(&lines)
    }

    /// Whether the slot has what lines with a key share: they need none but the numbers of their exchanges.
    @inline(__always)
    func isPrepared(for key: AccessKey, at slot: Int) -> Bool { slots[slot].key == key }

    /// Formats what lines with a key share, from the facts.
    mutating func prepare(_ key: AccessKey, _ request: inout RequestTexts) {
        var text = slots[key.slot].text.take()
        text.removeAll()
        // By default it is one piece up to the first number.
        let isJoined = !isSelective && format == .json
        if isJoined { text.append("\",") }
        text = shared.write(&facts, &request, text)
        if isJoined { text.append("\"bytes_in\":") }
        slots[key.slot].text = text
        slots[key.slot].key = key
    }

    /// Writes one line with what is in a slot. That of the default is no loop over columns: the bounds of the buffer
    /// stay in registers.
    mutating func append(_ request: inout RequestTexts, at slot: Int) {
        if facts.unixTime != unixTime { beginSecond(&request) }
        var out = lines.take()
        unsafe out.append(second.bytes)
        switch (isSelective, format) {
        case (false, .json):
            out.append("\"request_id\":\"")
            if unsafe PathEscape.isNeeded(by: request.path) {
                out = out.appendingEscaped(&request)
            } else {
                unsafe out.append(request.members)
            }
            unsafe out.append(slots[slot].text.bytes)
            out.append(decimal: facts.bytesIn)
            out.append(",\"bytes_out\":")
            out.append(decimal: facts.bytesOut)
            out.append(",\"duration_us\":")
            out.append(decimal: facts.microseconds)
            out.append("}\n")
        case (false, .text):
            out = out.appendingClient(&request)
            unsafe out.append(slots[slot].text.bytes)
            out = out.appendingCaller(&facts, &request)
        case (true, _):
            out = before.write(&facts, &request, out)
            unsafe out.append(slots[slot].text.bytes)
            out = behind.write(&facts, &request, out)
            out.endLine(format)
        }
        lines = out
    }

    /// Formats what the lines of a second begin with.
    @inline(never)
    private mutating func beginSecond(_ request: inout RequestTexts) {
        unixTime = facts.unixTime
        second.removeAll()
        if format == .json { second.append("{") }
        second = opening.write(&facts, &request, second.take())
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
