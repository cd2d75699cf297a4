private import MartletCore
private import MartletCrypto

/// The store key under which the sessions of a subject are indexed.
package struct SubjectKey: Sendable {
    static let tagLength = 8

    /// The first bytes of the lookup half of every token of the subject.
    let tag: [UInt8]
    /// The tag in hexadecimal: the Redis Cluster hash tag of all keys of the subject.
    let tagDigits: [UInt8]
    /// Distinguishes subjects with the same tag.
    let name: [UInt8]
    /// Both.
    var whole: [UInt8] { tagDigits + name }

    init(_ subject: String) {
        tag = Array(SHA256.digest(Array("martlet subject tag".utf8) + subject.utf8).prefix(SubjectKey.tagLength))
        tagDigits = Hexadecimal.encode(tag)
        name = Hexadecimal.encode(SHA256.digest(Array("martlet subject index".utf8) + subject.utf8).prefix(4))
    }
}

/// The store key of one session, derived from the SHA-256 of the lookup half of its tokens.
package struct SessionKey: Sendable {
    let tagDigits: [UInt8]
    /// The first 16 bytes of the SHA-256 in hexadecimal digits: those of the session's ID.
    let keyHash: [UInt8]
    /// Its first 8 bytes: identifies the session in revocation messages.
    let revocationID: UInt64

    init(lookup: [UInt8]) {
        let hash = SHA256.digest(lookup).prefix(SessionKey.idDigits / 2)
        tagDigits = Hexadecimal.encode(lookup.prefix(SubjectKey.tagLength))
        keyHash = Hexadecimal.encode(hash)
        revocationID = hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The key of a session in an index.
    init(tagDigits: [UInt8], keyHash: [UInt8]) {
        self.tagDigits = tagDigits
        self.keyHash = keyHash
        revocationID = Hexadecimal.value(keyHash.prefix(16)) ?? 0
    }

    /// `ses_…`, as shown to clients and in headers.
    var id: String { SessionKey.id(of: keyHash) }

    /// The key without its configured prefix: associated data of every sealed value.
    var name: [UInt8] { Array("{".utf8) + tagDigits + "}:s".utf8 + keyHash }

    package static let idDigits = 32
    private static let idPrefix = "ses_"

    static func id(of keyHash: some Collection<UInt8>) -> String {
        idPrefix + String(decoding: keyHash, as: UTF8.self)
    }

    /// The digits of an ID; `nil` if it is malformed.
    static func digits(of id: String) -> [UInt8]? {
        let text = Array(id.utf8)
        guard text.count == idPrefix.utf8.count + idDigits, text.starts(with: idPrefix.utf8) else { return nil }
        let digits = text[idPrefix.utf8.count...]
        guard Hexadecimal.value(digits.prefix(16)) != nil, Hexadecimal.value(digits.suffix(16)) != nil else {
            return nil
        }
        return Array(digits)
    }
}
