internal import MartletCore

/// How access records are written down.
package enum AccessFormat: Sendable { case json, text }

/// Where access records go.
///
/// Handing over never blocks: a sink that is behind drops and counts.
package protocol AccessLogging: Sendable {
    var format: AccessFormat { get }
    /// Takes whole lines.
    func write(_ lines: UnsafeBufferPointer<UInt8>)
}

/// What the access log says of one request.
///
/// The texts are lent for the call that writes them.
@safe struct AccessRecord: ~Copyable {
    let unixTime: Int64
    let requestID: UnsafeBufferPointer<UInt8>
    let client: [UInt8]
    let method: UnsafeBufferPointer<UInt8>
    let host: UnsafeBufferPointer<UInt8>
    let path: UnsafeBufferPointer<UInt8>
    let route: [UInt8]
    let status: Int
    let reason: [UInt8]
    let provider: [UInt8]
    let upstream: [UInt8]
    let bytesIn: Int
    let bytesOut: Int
    let microseconds: Int
}

/// The access log of one loop: records are formatted here and handed over in batches.
///
/// Never a token, never a query.
struct AccessRecords: ~Copyable {
    private static let batchBytes = 16 * 1024
    private static let batchTime: Int64 = 50_000_000

    private var lines = ByteBuffer(capacity: 32 * 1024)
    private var handedOver: Int64 = 0

    var isEmpty: Bool { lines.isEmpty }

    /// Hands a batch over when it is large or old enough, or the loop has nothing else to do.
    mutating func hand(to log: any AccessLogging, now: Int64, isIdle: Bool) {
        guard !lines.isEmpty else { return }
        guard isIdle || lines.count >= AccessRecords.batchBytes || now &- handedOver >= AccessRecords.batchTime else {
            return
        }
        handedOver = now
        unsafe log.write(lines.bytes)
        lines.removeAll()
    }

    /// Writes one record.
    mutating func append(_ record: borrowing AccessRecord, format: AccessFormat) {
        switch format {
        case .json: json(record)
        case .text: text(record)
        }
    }

    private mutating func json(_ record: borrowing AccessRecord) {
        lines.append("{\"time\":")
        lines.append(decimal: Int(record.unixTime))
        lines.append(",\"event\":\"request\",\"request_id\":\"")
        unsafe lines.append(record.requestID)
        lines.append("\",\"client\":\"")
        lines.append(record.client)
        lines.append("\",\"method\":\"")
        unsafe lines.append(record.method)
        lines.append("\",\"host\":\"")
        unsafe lines.append(record.host)
        lines.append("\",\"path\":\"")
        unsafe appendEscaped(unsafe record.path)
        lines.append("\",\"route\":\"")
        lines.append(record.route)
        lines.append("\",\"status\":")
        lines.append(decimal: record.status)
        lines.append(",\"reason\":\"")
        lines.append(record.reason)
        lines.append("\",\"provider\":\"")
        lines.append(record.provider)
        lines.append("\",\"upstream\":\"")
        lines.append(record.upstream)
        lines.append("\",\"bytes_in\":")
        lines.append(decimal: record.bytesIn)
        lines.append(",\"bytes_out\":")
        lines.append(decimal: record.bytesOut)
        lines.append(",\"duration_us\":")
        lines.append(decimal: record.microseconds)
        lines.append("}\n")
    }

    private mutating func text(_ record: borrowing AccessRecord) {
        lines.append(decimal: Int(record.unixTime))
        lines.append(" ")
        lines.append(record.client)
        lines.append(" ")
        unsafe lines.append(record.method)
        lines.append(" ")
        unsafe lines.append(record.host)
        unsafe appendEscaped(unsafe record.path)
        lines.append(" ")
        lines.append(decimal: record.status)
        lines.append(" ")
        lines.append(record.reason)
        lines.append(" route=")
        lines.append(record.route)
        lines.append(" upstream=")
        lines.append(record.upstream)
        lines.append(" ")
        lines.append(decimal: record.microseconds)
        lines.append("us id=")
        unsafe lines.append(record.requestID)
        lines.append("\n")
    }

    /// Escapes what JSON asks for.
    ///
    /// Only a path needs it: every other text is ours, or a token or a host by now.
    private mutating func appendEscaped(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard unsafe bytes.contains(where: { $0 == 0x22 || $0 == 0x5C || $0 < 0x20 || $0 > 0x7E }) else {
            return unsafe lines.append(bytes)
        }
        for index in bytes.indices {
            let byte = unsafe bytes[index]
            if byte == 0x22 || byte == 0x5C { lines.append(0x5C as UInt8) }
            lines.append(byte < 0x20 || byte > 0x7E ? 0x3F : byte)
        }
    }
}
