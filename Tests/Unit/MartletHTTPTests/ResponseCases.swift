import MartletHTTP
import Testing

/// A response, the request method, and the expected result.
struct ResponseCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let bytes: [UInt8]
    let method: Method
    let expected: String
}

private func head(_ text: String, _ expected: String, to method: Method = .get) -> ResponseCase {
    ResponseCase(
        testDescription: text.debugDescription, bytes: Array("\(text)\r\n\r\n".utf8), method: method, expected: expected
    )
}

enum ResponseCases {
    static let all = lines + bodies + rejections

    static let lines = [
        head("HTTP/1.1 200 OK\r\nContent-Length: 2", "200 'OK' length(2)"),
        head("HTTP/1.1 200 \r\nContent-Length: 0", "200 '' length(0)"),
        head("HTTP/1.1 200\r\nContent-Length: 0", "200 '' length(0)"),
        head("HTTP/1.1 404 Not\tFound é\r\nContent-Length: 0", "404 'Not\tFound é' length(0)"),
        head("HTTP/1.0 200 OK\r\nContent-Length: 2", "200 'OK' length(2) 1.0 close"),
        head("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2", "200 'OK' length(2) 1.0"),
        head("HTTP/1.1 599 x\r\nContent-Length: 0", "599 'x' length(0)"),
        head("HTTP/1.1 099 x", "upstream.bad_status_line"),
        head("HTTP/1.1 600 x", "upstream.bad_status_line"),
        head("HTTP/1.1 20 OK", "upstream.bad_status_line"),
        head("HTTP/1.1 2000 OK", "upstream.bad_status_line"),
        head("HTTP/1.1 +20 OK", "upstream.bad_status_line"),
        head("HTTP/1.1  200 OK", "upstream.bad_status_line"),
        head("HTTP/1.1\t200 OK", "upstream.bad_status_line"),
        head("HTTP/1.1", "upstream.bad_status_line"),
        head("HTTP/1.1 ", "upstream.bad_status_line"),
        head("HTTP/2.0 200 OK", "upstream.bad_version"),
        head("HTTP/1.2 200 OK", "upstream.bad_version"),
        head("HTTP/1.4", "upstream.bad_version"),
        head("HTTP/1.4\r\n;Se\rx", "upstream.bad_version"),
        head("HTTP/1.1 20", "upstream.bad_status_line"),
        head("HTTP", "upstream.bad_status_line"),
        head("http/1.1 200 OK", "upstream.bad_status_line"),
        head("HTTX/1.1 200 OK", "upstream.bad_status_line"),
        head("ICY 200 OK", "upstream.bad_status_line"),
        head("HTTP/1.1 200 O\u{0}K", "upstream.bad_status_line"),
        head("HTTP/1.1 200 O\u{7F}K", "upstream.bad_status_line"),
        head("HTTP/1.1 200 OK\rx", "upstream.bare_cr"),
        head("HTTP/1.1 200 OK\nx: y", "upstream.bare_lf"),
        head("\r\nHTTP/1.1 200 OK", "upstream.bad_status_line"),
    ]

    static let bodies = [
        head("HTTP/1.1 200 OK", "200 'OK' untilClose close"),
        head("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", "200 'OK' chunked"),
        head("HTTP/1.1 200 OK\r\nContent-Length: 9", "200 'OK' none", to: .head),
        head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "200 'OK' none", to: .head),
        head("HTTP/1.1 200 OK", "200 'OK' none", to: .head),
        head("HTTP/1.1 304 Not Modified\r\nContent-Length: 9", "304 'Not Modified' none"),
        head("HTTP/1.1 204 No Content", "204 'No Content' none"),
        head("HTTP/1.1 204 No Content\r\nContent-Length: 0", "204 'No Content' none"),
        head("HTTP/1.1 204 No Content\r\nContent-Length: 1", "204 'No Content' none close"),
        head("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked", "204 'No Content' none close"),
        head("HTTP/1.1 100 Continue", "100 'Continue' none interim"),
        head("HTTP/1.1 101 S\r\nContent-Length: 0", "101 'S' none"),
        head("HTTP/1.1 101 S\r\nTransfer-Encoding: chunked\r\nContent-Length: 0", "101 'S' none close"),
        head("HTTP/1.1 103 E\r\nTransfer-Encoding: gzip", "103 'E' none interim close"),
        head("HTTP/1.1 103 Early Hints\r\nLink: x", "103 'Early Hints' none interim"),
        head("HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket", "101 'x' none upgrade=websocket"),
        head("HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nContent-Length: 0", "200 'OK' length(0)"),
        head("HTTP/1.1 200 OK", "200 'OK' none", to: .connect),
        head("HTTP/1.1 403 No\r\nContent-Length: 1", "403 'No' length(1)", to: .connect),
        head("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1", "200 'OK' length(1) close"),
        head("HTTP/1.1 200 OK\r\nconnection: x\r\nConnection: Close\r\nContent-Length: 1", "200 'OK' length(1) close"),
    ]

    static let rejections = [
        head(
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "upstream.transfer_encoding_with_content_length"),
        head(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1",
            "upstream.transfer_encoding_with_content_length"),
        head(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1",
            "upstream.transfer_encoding_with_content_length", to: .head),
        head("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked", "upstream.bad_transfer_encoding"),
        head(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "upstream.bad_transfer_encoding"),
        head("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked", "upstream.transfer_encoding_in_http10"),
        head("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1", "upstream.repeated_content_length"),
        head("HTTP/1.1 200 OK\r\nContent-Length: 1, 1", "upstream.bad_content_length"),
        head("HTTP/1.1 204 No\r\nContent-Length: 1, 1", "upstream.bad_content_length"),
        head("HTTP/1.1 200 OK\r\nContent-Length: -1", "upstream.bad_content_length"),
        head("HTTP/1.1 200 OK\r\nContent-Length:", "upstream.bad_content_length"),
        head("HTTP/1.1 200 OK\r\nX: a\r\n b", "upstream.obs_fold"),
        head("HTTP/1.1 200 OK\r\nX : a", "upstream.space_before_colon"),
        head("HTTP/1.1 200 OK\r\nX", "upstream.bad_field_name"),
        head("HTTP/1.1 200 OK\r\n: x", "upstream.bad_field_name"),
        head("HTTP/1.1 200 OK\r\nX: a\u{0}b", "upstream.bad_field_value"),
        head("HTTP/1.1 200 OK\r\nX: a\nY: b", "upstream.bare_lf"),
        head("HTTP/1.1 200 OK\r\nX: a\rY: b", "upstream.bare_cr"),
        head("HTTP/1.1 200 OK\r\nConnection: (close)", "upstream.bad_connection"),
        head(
            "HTTP/1.1 200 OK\r\n" + Array(repeating: "X: y", count: 101).joined(separator: "\r\n"),
            "upstream.too_many_fields"),
        head("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 16384))", "upstream.head_too_large"),
    ]
}
