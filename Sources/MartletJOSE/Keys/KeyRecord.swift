internal import MartletCore

/// The record that instances share through the store: an issuer's document and when it was fetched.
///
/// One line with the version and the Unix time, followed by the document as received.
struct KeyRecord: Sendable {
    private static let version = "martlet-jwks-1"
    private static let maximumTimeDigits = 12

    let fetchedAt: UnixTime
    let document: [UInt8]

    init(fetchedAt: UnixTime, document: [UInt8]) {
        self.fetchedAt = fetchedAt
        self.document = document
    }

    /// - Returns: `nil` for anything that `bytes` does not produce.
    init?(_ bytes: [UInt8]) {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let words = bytes[..<end].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 2, words[0].elementsEqual(Self.version.utf8),
            (1...Self.maximumTimeDigits).contains(words[1].count),
            words[1].allSatisfy({ $0 &- 48 < 10 }), let seconds = Int64(String(decoding: words[1], as: UTF8.self))
        else { return nil }
        fetchedAt = UnixTime(seconds: seconds)
        document = Array(bytes[(end &+ 1)...])
    }

    var bytes: [UInt8] { Array("\(Self.version) \(fetchedAt)\n".utf8) + document }
}
