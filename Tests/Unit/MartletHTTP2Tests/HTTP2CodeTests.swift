import CNghttp2
import Testing

@testable import MartletHTTP2

@Suite struct HTTP2CodeTests {
    @Test func `a failure of nghttp2 has a code`() {
        let rows: [(Int32, HTTP2Code)] = [
            (NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue, .protocolError),
            (NGHTTP2_ERR_FLOODED.rawValue, .enhanceYourCalm),
            (NGHTTP2_ERR_TOO_MANY_SETTINGS.rawValue, .enhanceYourCalm),
            (NGHTTP2_ERR_TOO_MANY_CONTINUATIONS.rawValue, .enhanceYourCalm),
            (NGHTTP2_ERR_NOMEM.rawValue, .internalError),
        ]
        for (failure, code) in rows { #expect(HTTP2Code(failure: Int(failure)) == code) }
    }

    @Test func `resets that a client can cause are its own`() {
        let provoked: [HTTP2Code] = [
            .protocolError, .flowControlError, .streamClosed, .frameSizeError, .refusedStream, .enhanceYourCalm,
        ]
        for value in UInt32(0)...14 {
            let code = HTTP2Code(rawValue: value)
            #expect(code.isProvoked == provoked.contains(code), "\(value)")
        }
    }

    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\r\n", 200), ("HTTP/1.1 101 ", 101), ("HTTP/1.1 20", nil), ("HTTP/1.0 200 OK", nil),
            ("HTTP/1.1 2x0 OK", nil),
        ] as [(String, Int?)])
    func `the status of a response text is found`(text: String, status: Int?) {
        let found = unsafe Array(text.utf8).withUnsafeBufferPointer { unsafe StatusDigits.parse($0) }
        #expect(found == status)
    }
}
