import MartletCore
import Testing

@testable import MartletRedis

/// Feeds the bytes in chunks of the given size and collects the replies.
private func read(
    _ text: String, chunkSize: Int, limits: RESPReader.Limits = RESPReader.Limits()
) throws(StoreError) -> [RedisReply] {
    var reader = try RESPReader(limits: limits)
    var replies: [RedisReply] = []
    let bytes = Array(text.utf8)
    var start = 0
    while start < bytes.count {
        let part = Array(bytes[start..<min(start + chunkSize, bytes.count)])
        try unsafe part.withUnsafeBufferPointer { part throws(StoreError) in try unsafe reader.feed(part) }
        while let reply = try reader.next() { replies.append(reply) }
        start += chunkSize
    }
    return replies
}

@Suite struct RESPTests {
    static let stream =
        "+OK\r\n:42\r\n:-7\r\n$5\r\nhello\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*3\r\n:1\r\n$1\r\na\r\n*1\r\n+x\r\n"
        + "-WRONGTYPE Operation against a key\r\n-lower case\r\n-\r\n$4\r\n\r\n\r\n\r\n"
        + "*3\r\n*2\r\n$-1\r\n:1\r\n*-1\r\n*1\r\n*1\r\n$-1\r\n"
    static let replies: [RedisReply] = [
        .status("OK"), .integer(42), .integer(-7), .bytes(Array("hello".utf8)), .bytes([]), .nothing, .nothing,
        .array([]), .array([.integer(1), .bytes([97]), .array([.status("x")])]), .error(kind: "WRONGTYPE"),
        .error(kind: "ERR"), .error(kind: "ERR"), .bytes([13, 10, 13, 10]),
        .array([.array([.nothing, .integer(1)]), .nothing, .array([.array([.nothing])])]),
    ]

    @Test func `parses the same replies from chunks of any size`() throws {
        for chunkSize in 1...Self.stream.utf8.count {
            #expect(try read(Self.stream, chunkSize: chunkSize) == Self.replies)
        }
    }

    @Test func `parses the same replies when split at each byte`() throws {
        let bytes = Array(Self.stream.utf8)
        for cut in 0...bytes.count {
            var reader = try RESPReader(limits: RESPReader.Limits())
            var replies: [RedisReply] = []
            for part in [Array(bytes[..<cut]), Array(bytes[cut...])] {
                try unsafe part.withUnsafeBufferPointer { part throws(StoreError) in try unsafe reader.feed(part) }
                while let reply = try reader.next() { replies.append(reply) }
            }
            #expect(replies == Self.replies)
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n", "\r\n", "PONG\r\n", ":\r\n", ":1a\r\n", ":99999999999999999999\r\n", "$x\r\n", "$-2\r\n",
        "$99999999999999999999\r\n", "*-2\r\n", "*2147483648\r\n", "*2147483647\r\n", "*65537\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "%1\r\n", "_\r\n", "#t\r\n", ">1\r\n",
    ])
    func `rejects what is not RESP2 or exceeds the limits`(text: String) {
        for chunkSize in [1, 2, 1000] {
            let error = #expect(throws: StoreError.self) { try read(text, chunkSize: chunkSize) }
            #expect(error?.code == .redisReplyMalformed)
        }
    }

    @Test(arguments: ["$100\r\n", "+", "*10\r\n$20\r\n12345678901234567890\r\n$600\r\n"])
    func `keeps nothing of a reply that is too large`(start: String) throws {
        var limits = RESPReader.Limits()
        limits.bytes = 64
        for chunkSize in [1, 7, 1000] {
            let text = start + String(repeating: "x", count: 65)
            #expect(try read(text, chunkSize: chunkSize, limits: limits) == [])
        }
    }

    @Test func `skips a reply that is too large, and no other`() throws {
        var limits = RESPReader.Limits()
        limits.bytes = 64
        let large = String(repeating: "y", count: 65)
        let text =
            "+OK\r\n$65\r\n\(large)\r\n:1\r\n+\(large)\r\n*2\r\n:1\r\n$65\r\n\(large)\r\n-ERR \(large)\r\n$5\r\nhello\r\n"
            + "*3\r\n*2\r\n$-1\r\n$30\r\n\(large.prefix(30))\r\n*-1\r\n$20\r\n\(large.prefix(20))\r\n:2\r\n"
        let replies: [RedisReply] = [
            .status("OK"), .tooLarge, .integer(1), .tooLarge, .tooLarge, .tooLarge, .bytes(Array("hello".utf8)),
            .tooLarge, .integer(2),
        ]
        for chunkSize in 1...text.utf8.count {
            #expect(try read(text, chunkSize: chunkSize, limits: limits) == replies, "\(chunkSize)")
        }
        limits.bytes = 1024 * 1024
        let huge = "$3000000\r\n\(String(repeating: "z", count: 3_000_000))\r\n+OK\r\n"
        #expect(try read(huge, chunkSize: 16 * 1024, limits: limits) == [.tooLarge, .status("OK")])
    }

    @Test func `a line ends with a carriage return and a line feed, not with one of them`() throws {
        let text = "-ERR\nTx\r+\n&\r\n+OK\r\n$2\r\n\r\n\r\n:1\r\n"
        let whole = try read(text, chunkSize: 1000, limits: RESPReader.Limits())
        #expect(whole.count == 4 && whole[1] == .status("OK") && whole[2] == .bytes(Array("\r\n".utf8)))
        for chunkSize in 1...text.utf8.count {
            #expect(try read(text, chunkSize: chunkSize, limits: RESPReader.Limits()) == whole, "\(chunkSize)")
        }
    }

    @Test func `counts the bytes of each reply separately`() throws {
        var limits = RESPReader.Limits()
        limits.bytes = 64
        let text = String(repeating: "$40\r\n" + String(repeating: "x", count: 40) + "\r\n", count: 50)
        for chunkSize in [1, 13, 50, 1000] { #expect(try read(text, chunkSize: chunkSize, limits: limits).count == 50) }
    }

    @Test func `writes commands as arrays of bulk strings`() throws {
        var output = ByteBuffer()
        try RESPCommand.append([Array("SET".utf8), [], [0, 13, 10]], to: &output)
        #expect(output.array == Array("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\n\0\r\n\r\n".utf8))
    }

    @Test func `rejects commands that are empty or exceed the limits`() {
        let beyond: [[[UInt8]]] = [
            [], [[UInt8](repeating: 0, count: RESPCommand.maximumBytes + 1)],
            [[UInt8]](repeating: [1], count: RESPCommand.maximumArguments + 1),
        ]
        for arguments in beyond {
            var output = ByteBuffer()
            let error = #expect(throws: StoreError.self) { try RESPCommand.append(arguments, to: &output) }
            #expect(error?.code == .redisCommandInvalid)
            let written = output.count
            #expect(written == 0)
        }
    }
}
