@testable import MartletDecisions

/// Texts that a client sends, and texts that it is expected to get.
enum BenchText {
    /// Of every moment of a bench.
    static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    static let get = "GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n"
    static let chunked = "POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// The key is that of RFC 6455 §1.3.
    static let upgrade =
        "GET /api/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

    /// A request with a body of a length; the fields end with line breaks.
    static func post(_ length: Int, fields: String = "") -> String {
        "POST /api/x HTTP/1.1\r\nHost: a\r\n\(fields)Content-Length: \(length)\r\n\r\n"
    }

    /// The ID of a bench's request, from 1.
    static func requestID(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return "0123456789abcdef" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The head of a forwarded response.
    /// - Parameters:
    ///   - lines: the upstream's, each with its line break.
    ///   - own: the gateway's lines between `Date` and the ID.
    static func head(_ lines: String, own: String = "", request: Int = 1) -> String {
        "\(lines)Date: \(date)\r\n\(own)X-Request-Id: \(requestID(request))\r\n\r\n"
    }

    /// The body of an error response.
    static func problemBody(_ status: Int, _ title: String, _ code: String, request: Int = 1) -> String {
        let id = requestID(request)
        var text = #"{"type":"urn:martlet:problem:\#(code)","title":"\#(title)","status":\#(status),"#
        text += #""code":"\#(code)","request_id":"\#(id)"}"#
        return text + "\n"
    }

    /// An error response.
    /// - Parameter fields: further lines, each with its line break.
    static func problem(
        _ status: Int, _ title: String, _ code: String, request: Int = 1, fields: String = "", closes: Bool = false
    ) -> String {
        let body = problemBody(status, title, code, request: request)
        var text = "HTTP/1.1 \(status) \(title)\r\nContent-Type: application/problem+json\r\n"
        text += "Cache-Control: no-store\r\nContent-Length: \(body.utf8.count)\r\nDate: \(date)\r\n"
        text += "X-Request-Id: \(requestID(request))\r\n\(fields)"
        if closes { text += "Connection: close\r\n" }
        return text + "\r\n" + body
    }
}
