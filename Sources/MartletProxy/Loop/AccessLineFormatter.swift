internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions

/// Formats the access lines of one loop, and collects them in batches.
///
/// Never contains a token or a query. What many records share is cached as text: the second, and the part from the
/// route to the upstream (``AccessTexts``).
struct AccessLineFormatter: ~Copyable {
    private static let batchBytes = 64 * 1024
    private static let batchTime: Int64 = 50_000_000

    private var lines = ByteBuffer(capacity: 96 * 1024)
    private var flushedAt: Int64 = 0
    /// The beginning of a record, up to the time in seconds.
    private var opening = ByteBuffer(capacity: 64)
    private var openingTime = Int64.min
    private var openingFormat = AccessFormat.json
    private var texts = AccessTexts()
    private let instanceID: [UInt8]

    /// - Parameter instanceID: the name of the process; none if empty.
    init(instanceID: String) { self.instanceID = Array(instanceID.utf8) }

    var isEmpty: Bool { lines.isEmpty }

    /// Hands over what there is.
    mutating func flush(to log: any AccessLogging) {
        if !lines.isEmpty { log.take(&lines) }
    }

    /// Flushes a batch that is large or old enough, or when the loop is idle.
    mutating func flush(to log: any AccessLogging, now: Int64, isIdle: Bool) {
        guard !lines.isEmpty else { return }
        guard isIdle || lines.count >= Self.batchBytes || now &- flushedAt >= Self.batchTime else {
            return
        }
        flushedAt = now
        log.take(&lines)
    }

    /// Whether the texts of a key are cached, so that ``append(_:_:format:)`` can write a record with it.
    func isPrepared(for key: AccessKey) -> Bool { texts.contains(key) }

    /// Caches the texts of a key.
    mutating func prepare(
        _ key: AccessKey, route: [UInt8], reason: [UInt8], member: [UInt8] = [], condition: [UInt8] = [],
        provider: [UInt8], upstream: [UInt8], format: AccessFormat
    ) {
        texts.store(
            key, route: route, reason: reason, member: member, condition: condition, provider: provider,
            upstream: upstream, format)
    }

    /// Writes one record with the texts of a key that was prepared for the same format.
    ///
    /// - Parameter request: lent `inout`, though it is only read: one that a function borrows is copied for it.
    mutating func append(_ line: AccessLine, _ request: inout RequestTexts, _ key: AccessKey, format: AccessFormat) {
        assert(texts.contains(key))
        if line.unixTime != openingTime || format != openingFormat { open(line.unixTime, format) }
        switch format {
        case .json: lines = unsafe json(line, &request, texts.text(of: key), lines.take())
        case .text: lines = unsafe text(line, &request, texts.text(of: key), lines.take())
        }
    }

    /// Formats the common beginning of all records of a second.
    @inline(never)
    private mutating func open(_ unixTime: Int64, _ format: AccessFormat) {
        openingTime = unixTime
        openingFormat = format
        opening.removeAll()
        switch format {
        case .json:
            opening.append("{\"time\":")
            opening.append(decimal: Int(unixTime))
            opening.append(",\"event\":\"request\"")
            if !instanceID.isEmpty {
                opening.append(",\"instance_id\":\"")
                opening.append(instanceID)
                opening.append("\"")
            }
            opening.append(",\"request_id\":\"")
        case .text:
            opening.append(decimal: Int(unixTime))
            opening.append(" ")
        }
    }

    /// Writes one record with the fields of a plan.
    mutating func append(
        _ line: SelectedLine, _ request: inout RequestTexts, _ plan: AccessPlan, format: AccessFormat
    ) {
        SelectedLineWriter(plan, format, instanceID: instanceID).write(line, &request, into: &lines)
    }

    // The buffer is passed by value, in and out: in a local, its bounds stay in registers.

    @inline(__always)
    private func json(
        _ line: AccessLine, _ request: inout RequestTexts, _ texts: UnsafeBufferPointer<UInt8>,
        _ buffer: consuming ByteBuffer
    ) -> ByteBuffer {
        var out = buffer
        unsafe out.append(opening.bytes)
        if unsafe PathEscape.isNeeded(by: request.path) {
            unsafe out.append(request.beforePath)
            unsafe out = out.appending(escaped: request.path)
            unsafe out.append(request.names)
        } else {
            unsafe out.append(request.members)
        }
        unsafe out.append(texts)
        out.append(decimal: line.bytesIn)
        out.append(",\"bytes_out\":")
        out.append(decimal: line.bytesOut)
        out.append(",\"duration_us\":")
        out.append(decimal: line.microseconds)
        out.append("}\n")
        return out
    }

    @inline(never)
    private func text(
        _ line: AccessLine, _ request: inout RequestTexts, _ texts: UnsafeBufferPointer<UInt8>,
        _ buffer: consuming ByteBuffer
    ) -> ByteBuffer {
        var out = buffer
        unsafe out.append(opening.bytes)
        unsafe out.append(request.client)
        out.append(" ")
        unsafe out.append(request.method)
        out.append(" ")
        unsafe out.append(request.host)
        if unsafe PathEscape.isNeeded(by: request.path) {
            unsafe out = out.appending(escaped: request.path)
        } else {
            unsafe out.append(request.path)
        }
        unsafe out.append(texts)
        out.append(decimal: line.microseconds)
        out.append("us id=")
        unsafe out.append(request.requestID)
        let caller = unsafe request.caller
        if let names = unsafe CallerNames.parts(of: caller) {
            out.append(" subject=")
            unsafe out.append(UnsafeBufferPointer(rebasing: caller[names.subject]))
            if !names.session.isEmpty {
                out.append(" session_id=")
                unsafe out.append(UnsafeBufferPointer(rebasing: caller[names.session]))
            }
        }
        if let trace = unsafe request.trace {
            out.append(" trace_id=")
            unsafe out.append(trace)
        }
        if !instanceID.isEmpty {
            out.append(" instance_id=")
            out.append(instanceID)
        }
        out.append("\n")
        return out
    }
}
