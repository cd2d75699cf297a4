import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@Suite struct ChunkedDecoderTests {
    static let cases = [
        MessageCase("two chunks", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "'abcde'"),
        MessageCase("no chunk", "0\r\n\r\n", "''"),
        MessageCase("many zeros", "000\r\n\r\n", "''"),
        MessageCase("sixteen digits", "0000000000000003\r\nabc\r\n0\r\n\r\n", "'abc'"),
        MessageCase("seventeen digits", "00000000000000003\r\nabc\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("either case", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "'01234567890123456789'"),
        MessageCase("the next request behind it", "0\r\n\r\nGET", "'' rest=3"),
        MessageCase("line ends in the data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "'\r\n\r\n'"),
        MessageCase("an extension", "1;a=b\r\nx\r\n0;c\r\n\r\n", "'x'"),
        MessageCase("an extension with blanks and a tab", "1 ; a\t= \"b;c\"\r\nx\r\n0\r\n\r\n", "'x'"),
        MessageCase("the longest extension", "1;\(String(repeating: "e", count: 255))\r\nx\r\n0\r\n\r\n", "'x'"),
        MessageCase(
            "too long an extension", "1;\(String(repeating: "e", count: 256))\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("an endless extension", "1;\(String(repeating: "e", count: 300))", "request.bad_chunk"),
        MessageCase(
            "extensions that pile up",
            String(repeating: "1;\(String(repeating: "e", count: 200))\r\nx\r\n", count: 100),
            "request.bad_chunk"),
        MessageCase("LF after the size", "1\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("LF after an extension", "1;a\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("CR in an extension", "1;a\rb\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("CR CR LF after the size", "1\r\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("NUL in an extension", "1;a\u{0}\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("obs-text in an extension", "1;é\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("LF after the data", "1\r\nx\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("no CRLF after the data", "1\r\nxy\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("CR after the data", "1\r\nx\r0\r\n\r\n", "request.bad_chunk"),
        MessageCase("no size", "\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("only an extension", ";a\r\n", "request.bad_chunk"),
        MessageCase("a sign", "+1\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("a minus", "-1\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("0x", "0x1\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("an underscore", "1_0\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("a letter behind", "1g\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("a space before", " 1\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("a space behind", "1 \r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("a comma behind", "1,1\r\nx\r\n0\r\n\r\n", "request.bad_chunk"),
        MessageCase("overflow", "8000000000000000\r\nx", "request.bad_chunk"),
        MessageCase("all bits", "FFFFFFFFFFFFFFFF\r\nx", "request.bad_chunk"),
        MessageCase("the largest size", "7FFFFFFFFFFFFFFF\r\nx", "incomplete"),
        MessageCase("a trailer", "0\r\nX-Sum: 1\r\n\r\n", "'' X-Sum=1"),
        MessageCase("two trailers", "1\r\nx\r\n0\r\nX-Sum: 1\r\nY:\t2 \r\n\r\n", "'x' X-Sum=1 Y=2"),
        MessageCase("LF for the last line", "0\r\n\n", "request.bad_trailer"),
        MessageCase("LF after a trailer", "0\r\nX: y\n\r\n", "request.bad_trailer"),
        MessageCase("CR for the last line", "0\r\n\rX", "request.bad_trailer"),
        MessageCase("no colon in a trailer", "0\r\nGET / HTTP/1.1\r\n\r\n", "request.bad_trailer"),
        MessageCase("a folded trailer", "0\r\nX: y\r\n z\r\n\r\n", "request.bad_trailer"),
        MessageCase("a space before the colon", "0\r\nX : y\r\n\r\n", "request.bad_trailer"),
        MessageCase("an empty name", "0\r\n: y\r\n\r\n", "request.bad_trailer"),
        MessageCase("NUL in a trailer", "0\r\nX: \u{0}\r\n\r\n", "request.bad_trailer"),
        MessageCase(
            "64 trailers", "0\r\n\(String(repeating: "X:\r\n", count: 64))\r\n",
            "''" + String(repeating: " X=", count: 64)),
        MessageCase("65 trailers", "0\r\n\(String(repeating: "X:\r\n", count: 65))\r\n", "request.bad_trailer"),
        MessageCase("nothing", "", "incomplete"),
        MessageCase("no last chunk", "1\r\nx\r\n", "incomplete"),
        MessageCase("no last line", "0\r\n", "incomplete"),
    ]

    @Test(arguments: cases)
    func `decodes valid bodies and rejects others`(_ body: MessageCase) {
        #expect(decodeChunked(body.bytes) == body.expected)
    }

    @Test(arguments: cases)
    func `has the same result wherever the bytes are split`(_ body: MessageCase) {
        let step = max(1, body.bytes.count / 400)
        for cut in stride(from: 0, to: body.bytes.count, by: step) {
            let outcome = decodeChunked(body.bytes, cuts: [cut])
            if outcome != body.expected { Issue.record("cut at \(cut): \(outcome)") }
        }
        #expect(decodeChunked(body.bytes, cuts: Array(0..<body.bytes.count)) == body.expected)
    }

    @Test func `bounds the trailer section`() {
        let exact = Array("0\r\nX: 78\r\nY: 8\r\n\r\n".utf8)
        #expect(decodeChunked(exact, maximumTrailerBytes: 13) == "'' X=78 Y=8")
        #expect(decodeChunked(exact, maximumTrailerBytes: 12) == "request.bad_trailer")
        #expect(decodeChunked(Array("0\r\nX: \(String(repeating: "y", count: 9000))".utf8)) == "request.bad_trailer")
    }

    @Test(arguments: [
        ("2   \r\nok\r\n0\r\n\r\n", "'ok'"), ("2\t\r\nok\r\n0 \r\n\r\n", "'ok'"),
        ("2 ;a=b\r\nok\r\n0\r\n\r\n", "'ok'"), ("2 x\r\nok\r\n0\r\n\r\n", "upstream.bad_chunk"),
        ("2 2\r\nok\r\n0\r\n\r\n", "upstream.bad_chunk"), (" 2\r\nok\r\n0\r\n\r\n", "upstream.bad_chunk"),
        ("2 \nok\r\n0\r\n\r\n", "upstream.bad_chunk"),
        ("2\(String(repeating: " ", count: 257))\r\nok\r\n0\r\n\r\n", "upstream.bad_chunk"),
    ])
    func `an upstream may pad its sizes, a client may not`(_ text: String, _ expected: String) {
        let bytes = Array(text.utf8)
        #expect(decodeChunked(bytes, isUpstream: true) == expected)
        for cut in 0..<bytes.count { #expect(decodeChunked(bytes, cuts: [cut], isUpstream: true) == expected) }
        #expect(decodeChunked(bytes).hasPrefix("'") == text.contains(";"))
    }

    @Test func `blames the upstream for the upstream's chunks`() {
        #expect(decodeChunked(Array("x".utf8), isUpstream: true) == "upstream.bad_chunk")
        #expect(decodeChunked(Array("1\r\nxy".utf8), isUpstream: true) == "upstream.bad_chunk")
        #expect(decodeChunked(Array("0\r\n:".utf8), isUpstream: true) == "upstream.bad_trailer")
    }

    @Test func `decodes any chunking, however it is split`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            var body = ""
            var encoded: [UInt8] = []
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                let part = String(
                    (0..<Int.random(in: 1...40, using: &random)).map { _ in "\r\n0a;:".randomElement(using: &random)! })
                body += part
                encoded += Array("\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n".utf8)
            }
            encoded += Array("0\r\n\r\n".utf8)
            let cuts = (0..<3).map { _ in Int.random(in: 0...encoded.count, using: &random) }.sorted()
            #expect(decodeChunked(encoded, cuts: cuts) == "'\(body)'")
        }
    }
}
