package import MartletCore

/// How access records are written down.
package enum AccessFormat: Sendable { case json, text }

/// Where access records go.
///
/// Handing over never blocks: a sink that is behind drops and counts.
package protocol AccessLogging: Sendable {
    var format: AccessFormat { get }
    /// Takes whole lines, and leaves a buffer that has none.
    func take(_ lines: inout ByteBuffer)
}

/// The access log of one loop: records are formatted here and handed over in batches.
///
/// Never a token, never a query. What many records have in common is kept as written: the second, and the texts from the route
/// to the upstream (``AccessTexts``).
struct AccessRecords: ~Copyable {
    private static let batchBytes = 64 * 1024
    private static let batchTime: Int64 = 50_000_000

    private var lines = ByteBuffer(capacity: 96 * 1024)
    private var handedOver: Int64 = 0
    /// What a record begins with, up to the second it says.
    private var opening = ByteBuffer(capacity: 64)
    private var openingTime = Int64.min
    private var openingFormat = AccessFormat.json
    private var texts = AccessTexts()

    var isEmpty: Bool { lines.isEmpty }

    /// Hands a batch over when it is large or old enough, or the loop has nothing else to do.
    mutating func hand(to log: any AccessLogging, now: Int64, isIdle: Bool) {
        guard !lines.isEmpty else { return }
        guard isIdle || lines.count >= AccessRecords.batchBytes || now &- handedOver >= AccessRecords.batchTime else {
            return
        }
        handedOver = now
        log.take(&lines)
    }

    /// Whether the texts of a key are at hand, so that ``append(_:_:format:)`` can write a record of it.
    func isPrepared(for key: AccessKey) -> Bool { texts.holds(key) }

    /// Keeps the texts of a key.
    mutating func prepare(
        _ key: AccessKey, route: [UInt8], reason: [UInt8], member: [UInt8] = [], provider: [UInt8], upstream: [UInt8],
        format: AccessFormat
    ) {
        texts.keep(key, route: route, reason: reason, member: member, provider: provider, upstream: upstream, format)
    }

    /// Writes one record with the texts of a key that was prepared for the same format.
    mutating func append(_ line: borrowing AccessLine, _ key: AccessKey, format: AccessFormat) {
        assert(texts.holds(key))
        unsafe write(line, texts.text(of: key), format)
    }

    @inline(__always)
    private mutating func write(
        _ line: borrowing AccessLine, _ texts: UnsafeBufferPointer<UInt8>, _ format: AccessFormat
    ) {
        if line.unixTime != openingTime || format != openingFormat { open(line.unixTime, format) }
        switch format {
        case .json: lines = unsafe json(line, texts, lines.take())
        case .text: lines = unsafe text(line, texts, lines.take())
        }
    }

    /// Writes down what all records of a second begin with.
    @inline(never)
    private mutating func open(_ unixTime: Int64, _ format: AccessFormat) {
        openingTime = unixTime
        openingFormat = format
        opening.removeAll()
        switch format {
        case .json:
            opening.append("{\"time\":")
            opening.append(decimal: Int(unixTime))
            opening.append(",\"event\":\"request\",\"request_id\":\"")
        case .text:
            opening.append(decimal: Int(unixTime))
            opening.append(" ")
        }
    }

    // The buffer goes by value, in and out: in a local, its ends are in registers.

    @inline(__always)
    private func json(
        _ line: borrowing AccessLine, _ texts: UnsafeBufferPointer<UInt8>, _ buffer: consuming ByteBuffer
    ) -> ByteBuffer {
        var out = buffer
        unsafe out.append(opening.bytes)
        unsafe out.append(line.requestID)
        out.append("\",\"client\":\"")
        out.append(line.client)
        out.append("\",\"method\":\"")
        unsafe out.append(line.method)
        out.append("\",\"host\":\"")
        unsafe out.append(line.host)
        out.append("\",\"path\":\"")
        if unsafe PathEscape.isNeeded(by: line.path) {
            unsafe out = out.appending(escaped: line.path)
        } else {
            unsafe out.append(line.path)
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
        _ line: borrowing AccessLine, _ texts: UnsafeBufferPointer<UInt8>, _ buffer: consuming ByteBuffer
    ) -> ByteBuffer {
        var out = buffer
        unsafe out.append(opening.bytes)
        out.append(line.client)
        out.append(" ")
        unsafe out.append(line.method)
        out.append(" ")
        unsafe out.append(line.host)
        if unsafe PathEscape.isNeeded(by: line.path) {
            unsafe out = out.appending(escaped: line.path)
        } else {
            unsafe out.append(line.path)
        }
        unsafe out.append(texts)
        out.append(decimal: line.microseconds)
        out.append("us id=")
        unsafe out.append(line.requestID)
        out.append("\n")
        return out
    }
}

extension ByteBuffer {
    /// Appends a path, with what JSON does not take as it stands escaped, or as a question mark.
    ///
    /// Only a path needs it: every other text is ours, or a token or a host by now. The buffer goes by value, in and out, so
    /// that it can be in registers where this is not called.
    @inline(never)
    fileprivate consuming func appending(escaped path: UnsafeBufferPointer<UInt8>) -> ByteBuffer {
        for index in path.indices {
            let byte = unsafe path[index]
            if byte == 0x22 || byte == 0x5C { append(0x5C as UInt8) }
            append(byte < 0x20 || byte > 0x7E ? 0x3F : byte)
        }
        return self
    }
}
