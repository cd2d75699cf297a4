import MartletCore
import MartletHTTP

@testable import MartletResponder

/// A failure as clients get it.
struct WrittenFailure {
    static let date = "Thu, 01 Jan 1970 00:00:01 GMT"

    let text: String

    /// The response for an HTTP client.
    init(
        _ failure: Failure, close: Bool = false, offersBasic: Bool = false,
        strictTransportSeconds: Int64 = 0, after prefix: String = "", requestID: String = "r1"
    ) {
        var out = Self.buffer(prefix)
        let date = Self.buffer(Self.date)
        let id = Self.buffer(requestID)
        unsafe failure.write(
            into: &out, requestID: id.bytes, date: date, close: close, offersBasic: offersBasic,
            strictTransportSeconds: strictTransportSeconds)
        text = String(decoding: out.array, as: UTF8.self)
    }

    /// The response for a gRPC client.
    init(status failure: Failure, after prefix: String = "") {
        var out = Self.buffer(prefix)
        let date = Self.buffer(Self.date)
        let requestID = Self.buffer("r1")
        unsafe failure.writeStatusHead(as: .http2, into: &out, requestID: requestID.bytes, date: date)
        text = String(decoding: out.array, as: UTF8.self)
    }

    private static func buffer(_ text: String) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.append(text: text)
        return buffer
    }

    /// The lines of the head behind `X-Request-Id`, which only some responses have.
    var fields: [String] {
        let lines = head.split(separator: "\r\n" as Character, omittingEmptySubsequences: false).map(String.init)
        guard let last = lines.firstIndex(where: { $0.hasPrefix("X-Request-Id: ") }) else { return ["no request ID"] }
        return Array(lines[(last + 1)...])
    }

    /// The head without its last line break.
    var head: String { parts.head }
    var body: String { parts.body }

    private var parts: (head: String, body: String) {
        let bytes = Array(text.utf8)
        let end = Array("\r\n\r\n".utf8)
        for index in bytes.indices where bytes[index...].starts(with: end) {
            return (
                String(decoding: bytes[..<index], as: UTF8.self),
                String(decoding: bytes[(index + end.count)...], as: UTF8.self)
            )
        }
        return (text, "")
    }
}
