import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct UpstreamBodyEncoderTests {
    private static let chunked = UpstreamBodyEncoder(.chunked, on: .http1)
    private static let plain = UpstreamBodyEncoder(.length(0), on: .http1)

    /// The encoded pieces, and the end of the body where there are trailers.
    private func encode(_ pieces: [[UInt8]], with encoder: UpstreamBodyEncoder, trailers: String? = nil) -> [UInt8] {
        var output = ByteBuffer()
        for bytes in pieces {
            var piece = ByteBuffer()
            piece.append(bytes)
            unsafe encoder.append(piece.bytes, to: &output)
        }
        if let trailers {
            var lines = ByteBuffer()
            lines.append(text: trailers)
            unsafe encoder.appendEnd(trailers: lines.bytes, to: &output)
        }
        return output.array
    }

    private func text(_ pieces: [String], with encoder: UpstreamBodyEncoder, trailers: String? = nil) -> String {
        String(decoding: encode(pieces.map { Array($0.utf8) }, with: encoder, trailers: trailers), as: UTF8.self)
    }

    private func decode(_ text: String, with encoder: UpstreamBodyEncoder) -> String {
        var unsent = ByteBuffer()
        unsent.append(text: text)
        var held = HeldBody()
        held.reclaim(&unsent, from: encoder)
        let isEmpty = unsent.isEmpty
        #expect(isEmpty)
        return String(decoding: held.array, as: UTF8.self)
    }

    @Test func `only an unknown length on a connection is sent in chunks`() {
        for kind in [UpstreamKind.http1, .http2, .stream] {
            for framing in [BodyFraming.none, .length(0), .length(7), .untilClose] {
                #expect(!UpstreamBodyEncoder(framing, on: kind).isChunked)
            }
        }
        #expect(UpstreamBodyEncoder(.chunked, on: .http1).isChunked)
        #expect(!UpstreamBodyEncoder(.chunked, on: .stream).isChunked)
    }

    @Test func `each piece is a chunk`() {
        #expect(text(["abc", "0123456789abcdef"], with: Self.chunked) == "3\r\nabc\r\n10\r\n0123456789abcdef\r\n")
        #expect(text(["abc", "de"], with: Self.plain) == "abcde")
    }

    @Test func `an empty piece does not end the body`() {
        #expect(text(["", "a", ""], with: Self.chunked) == "1\r\na\r\n")
        #expect(text(["", "a", ""], with: Self.plain) == "a")
        #expect(text([], with: Self.chunked) == "")
    }

    @Test func `the end has the trailers`() {
        #expect(text([], with: Self.chunked, trailers: "") == "0\r\n\r\n")
        #expect(text(["a"], with: Self.chunked, trailers: "X: 1\r\n") == "1\r\na\r\n0\r\nX: 1\r\n\r\n")
        #expect(text(["a"], with: Self.plain, trailers: "X: 1\r\n") == "a")
    }

    @Test(arguments: [
        ("", ""), ("3\r\nabc\r\n", "abc"), ("3\r\nabc\r\n2\r\nde\r\n", "abcde"), ("1\r\na\r\n0\r\n\r\n", "a"),
        ("1\r\na\r\n0\r\nX: 1\r\nY: 2\r\n\r\n", "a"), ("0\r\n\r\n", ""),
    ])
    func `the content is decoded without chunks and trailers`(_ encoded: String, _ content: String) {
        #expect(decode(encoded, with: Self.chunked) == content)
        #expect(decode(encoded, with: Self.plain) == encoded)
    }

    @Test(arguments: [true, false])
    func `what was reclaimed is sent to any other upstream`(_ isChunked: Bool) {
        var random = SeededGenerator(seed: 41)
        let first = isChunked ? Self.chunked : Self.plain
        for _ in 0..<200 {
            let body = (0..<Int.random(in: 0...400, using: &random)).map { _ in
                UInt8.random(in: .min ... .max, using: &random)
            }
            let cuts = (0..<4).map { _ in Int.random(in: 0...body.count, using: &random) }.sorted()
            let pieces = zip([0] + cuts, cuts + [body.count]).map { Array(body[$0..<$1]) }
            let trailers = Bool.random(using: &random) ? "X-Sum: 1\r\n" : nil
            var output = ByteBuffer()
            output.append(encode(pieces, with: first, trailers: trailers))
            var held = HeldBody()
            held.reclaim(&output, from: first)
            let reclaimed = held.array
            #expect(reclaimed == body)
            for second in [Self.chunked, Self.plain] {
                held.forward(to: &output, with: second)
                let (isMoved, encoded) = (held.isEmpty, output.array)
                #expect(isMoved && encoded == encode([body], with: second))
                held.reclaim(&output, from: second)
                let again = held.array
                #expect(again == body)
            }
        }
    }

    @Test func `bytes are reclaimed behind those that are held`() {
        var held = HeldBody()
        for text in ["1\r\na\r\n", "", "2\r\nbc\r\n"] {
            var output = ByteBuffer()
            output.append(text: text)
            held.reclaim(&output, from: Self.chunked)
        }
        let content = held.array
        #expect(content == Array("abc".utf8))
    }

    @Test(arguments: [
        (["abc", "de"], 5, "abcde"), (["abc", "de"], 4, "abcd"), (["abc", "de"], 3, "abc"), (["abc"], 0, ""),
        (["abc", "", "de"], 6, "abcde"), (["abc", "de", "f"], 2, "ab"),
    ])
    func `a local handler gets the body up to a limit`(_ pieces: [String], _ limit: Int, _ expected: String) {
        var held = HeldBody()
        for text in pieces {
            var piece = ByteBuffer()
            piece.append(text: text)
            unsafe held.append(piece.bytes, upTo: limit)
        }
        let content = held.array
        #expect(content == Array(expected.utf8))
        held.release()
        let isEmpty = held.isEmpty
        #expect(isEmpty)
    }
}
