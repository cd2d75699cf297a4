internal import MartletCore
internal import MartletCrypto

/// The chain of an audit log: each line has a number, and the hash of the line before it.
struct AuditChain: Sendable, Equatable {
    /// The hash in the first line of a chain.
    static let noHash = String(repeating: "0", count: 2 * SHA256.length)
    private static let nameBytes = 8

    /// The name of the chain: random, the same in all of its lines.
    let name: String
    /// The number of the next line.
    private(set) var sequence: Int64
    /// The hash of the last line.
    private(set) var last: String

    /// A new chain.
    /// - Throws: `crypto.failure` without random bytes.
    init() throws(CryptoError) {
        name = Hexadecimal.text(try RandomBytes.make(Self.nameBytes))
        (sequence, last) = (0, Self.noHash)
    }

    /// Goes on behind a line.
    init(name: String, sequence: Int64, last: String) {
        (self.name, self.sequence, self.last) = (name, sequence, last)
    }

    /// The hash of a line without its line break.
    static func hash(_ line: [UInt8]) -> String { Hexadecimal.text(SHA256.digest(line)) }

    /// Adds a line.
    /// - Parameter body: its members, with the closing brace.
    mutating func append(_ body: [UInt8]) -> [UInt8] { advance(prefix + body) }

    /// Adds a head.
    /// - Throws: `crypto.failure`; nothing is added then.
    mutating func append(
        _ head: AuditHead, by key: AuditKey, at milliseconds: Int64
    ) throws(CryptoError) -> [UInt8] {
        var text = "\"time\":\"\(InternetTime.text(milliseconds: milliseconds))\",\"event\":\"head\""
        text += ",\"cause\":\"\(head.cause.rawValue)\""
        if head.opens { text += ",\"opens\":true" }
        if head.lost > 0 { text += ",\"lost\":\(head.lost)" }
        if let torn = head.torn { text += ",\"torn\":\"\(torn)\"" }
        text += ",\"key\":\"\(key.name)\""
        let signed = prefix + Array(text.utf8)
        let signature = Base64URL.encode(try key.sign(signed))
        return advance(signed + AuditLine.signatureMark + Array("\(signature)\"}".utf8))
    }

    private var prefix: [UInt8] {
        Array("{\"seq\":\(sequence),\"prev\":\"\(last)\",\"chain\":\"\(name)\",".utf8)
    }

    private mutating func advance(_ line: [UInt8]) -> [UInt8] {
        sequence &+= 1
        last = Self.hash(line)
        return line
    }
}
