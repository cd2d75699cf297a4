import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct HeldBodyTests {
    private static let chunked = UpstreamBodyEncoder(.chunked, on: .http1)
    private static let plain = UpstreamBodyEncoder(.length(0), on: .http1)

    private func buffer(_ text: String) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.append(text: text)
        return buffer
    }

    private func hold(_ text: String, in held: inout HeldBody, upTo limit: Int = .max) {
        let piece = buffer(text)
        unsafe held.append(piece.bytes, upTo: limit)
    }

    @Test func `is empty at first, and after its memory was freed`() {
        var held = HeldBody()
        let (isEmptyAtFirst, contentAtFirst) = (held.isEmpty, held.array)
        #expect(isEmptyAtFirst && contentAtFirst == [])
        hold("abc", in: &held)
        let (isEmpty, content) = (held.isEmpty, held.array)
        #expect(!isEmpty && content == Array("abc".utf8))
        held.release()
        let (isEmptyAgain, contentAgain) = (held.isEmpty, held.array)
        #expect(isEmptyAgain && contentAgain == [])
        hold("d", in: &held)
        let reused = held.array
        #expect(reused == Array("d".utf8))
    }

    @Test(arguments: [
        (["abc"], 3, "abc"), (["abc"], 2, "ab"), (["abc", "d"], 4, "abcd"), (["abc", "d"], 3, "abc"), (["a"], 0, ""),
        (["a"], -1, ""), (["", "", ""], 1, ""), (["abcd", "e", "f"], 5, "abcde"), (["ab", "cd"], Int.max, "abcd"),
    ])
    func `the limit is that of all pieces together`(_ pieces: [String], _ limit: Int, _ expected: String) {
        var held = HeldBody()
        for piece in pieces { hold(piece, in: &held, upTo: limit) }
        let (content, isEmpty) = (held.array, held.isEmpty)
        #expect(content == Array(expected.utf8) && isEmpty == expected.isEmpty)
    }

    @Test func `a limit that was lowered keeps what is held`() {
        var held = HeldBody()
        hold("abc", in: &held, upTo: 5)
        hold("de", in: &held, upTo: 2)
        let content = held.array
        #expect(content == Array("abc".utf8))
    }

    @Test(arguments: [
        ("5\r\nab", "ab"), ("5\r\nabcde", "abcde"), ("5\r\nabcde\r", "abcde"), ("5\r\n", ""), ("5", ""), ("", ""),
        ("1\r\na\r\n3\r\nb", "ab"), ("1\r\na\r\n3", "a"), ("1\r\na\r\nzz", "a"), ("zz", ""),
        ("1\r\na\r\n0\r\nX: 1\r\n", "a"), ("1\r\na\r\n0\r\n\r\n1\r\nb\r\n", "a"),
        ("00A\r\n0123456789\r\n", "0123456789"),
    ])
    func `content is reclaimed as far as it is whole`(_ encoded: String, _ expected: String) {
        var held = HeldBody()
        var unsent = buffer(encoded)
        held.reclaim(&unsent, from: Self.chunked)
        let (content, isTaken) = (held.array, unsent.isEmpty)
        #expect(content == Array(expected.utf8) && isTaken)
    }

    @Test func `bytes that are not in chunks are reclaimed unchanged`() {
        var held = HeldBody()
        var unsent = buffer("0\r\n\r\n")
        held.reclaim(&unsent, from: Self.plain)
        let content = held.array
        #expect(content == Array("0\r\n\r\n".utf8))
    }

    @Test(arguments: [
        (true, "GET", "GET2\r\nab\r\n"), (false, "GET", "GETab"), (true, "", "2\r\nab\r\n"), (false, "", "ab"),
    ])
    func `content is forwarded behind what the output has`(_ isChunked: Bool, _ before: String, _ expected: String) {
        var held = HeldBody()
        hold("ab", in: &held)
        var output = buffer(before)
        held.forward(to: &output, with: isChunked ? Self.chunked : Self.plain)
        let (text, isMoved) = (String(decoding: output.array, as: UTF8.self), held.isEmpty)
        #expect(text == expected && isMoved)
    }

    @Test func `nothing is forwarded where nothing is held`() {
        for encoder in [Self.chunked, Self.plain] {
            var held = HeldBody()
            var output = buffer("GET")
            held.forward(to: &output, with: encoder)
            let text = String(decoding: output.array, as: UTF8.self)
            #expect(text == "GET")
        }
    }

    @Test func `what several upstreams could not send stays in order`() {
        var held = HeldBody()
        var output = ByteBuffer()
        for (number, piece) in ["ab", "cd", "ef"].enumerated() {
            let encoder = number % 2 == 0 ? Self.chunked : Self.plain
            held.forward(to: &output, with: encoder)
            let next = buffer(piece)
            unsafe encoder.append(next.bytes, to: &output)
            held.reclaim(&output, from: encoder)
        }
        let (content, isTaken) = (held.array, output.isEmpty)
        #expect(content == Array("abcdef".utf8) && isTaken)
    }
}
