private import MartletCore
private import MartletCrypto
internal import MartletJSON

/// The last calls of Apple's endpoints, without any code, token or secret.
struct RequestLog {
    static let capacity = 1000

    struct Entry: Sendable {
        /// In milliseconds since 1970.
        let time: Int64
        let path: String
        let client: AppleCall
        let status: Int
        /// `ok`, or the code of the error.
        let outcome: String
        let isInjected: Bool
    }

    private var entries = FIFO<(number: Int64, entry: Entry)>()
    /// The number of the last entry; the first is 1.
    private(set) var last: Int64 = 0

    /// Appends an entry, and drops the oldest if there are too many.
    mutating func append(_ entry: Entry) {
        last += 1
        entries.append((last, entry))
        if entries.count > Self.capacity { _ = entries.popFirst() }
    }

    /// The entries after a number, oldest first.
    func objects(after number: Int64) -> [JSONValue] {
        var rest = entries
        return rest.popAll().filter { $0.number > number }.map { .object(Self.object($0.number, $0.entry)) }
    }

    private static func object(_ number: Int64, _ entry: Entry) -> JSONObject {
        func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
        return [
            "number": .integer(number), "time_ms": .integer(entry.time), "path": .string(entry.path),
            "grant_type": text(entry.client.grantType), "client_id": text(entry.client.clientID),
            "code_sha256": text(entry.client.codeDigest),
            "refresh_token_sha256": text(entry.client.refreshTokenDigest),
            "token_sha256": text(entry.client.tokenDigest), "status": .integer(Int64(entry.status)),
            "outcome": .string(entry.outcome), "injected": .bool(entry.isInjected),
        ]
    }
}

/// What the request log says of a call's parameters.
struct AppleCall: Sendable {
    private static let maximumBytes = 255

    let grantType: String?
    let clientID: String?
    /// SHA-256 in lower-case hexadecimal, like the others.
    let codeDigest: String?
    let refreshTokenDigest: String?
    let tokenDigest: String?

    /// - Parameter form: `nil` for a call whose parameters cannot be read.
    init(_ form: AppleForm?) {
        func digest(_ name: String) -> String? { form?[name].map { Hexadecimal.text(SHA256.digest(Array($0.utf8))) } }
        func text(_ name: String) -> String? {
            form?[name].map { String(decoding: $0.utf8.prefix(Self.maximumBytes), as: UTF8.self) }
        }
        grantType = text("grant_type")
        clientID = text("client_id")
        codeDigest = digest("code")
        refreshTokenDigest = digest("refresh_token")
        tokenDigest = digest("token")
    }
}
