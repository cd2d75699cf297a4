private import MartletCore
private import MartletCrypto

/// Where the sessions of a subject are filed.
package struct SubjectPlace: Sendable {
    static let tagLength = 8

    /// The first part of the lookup half of every token of the subject.
    let tag: [UInt8]
    /// The tag in digits: what a Redis Cluster chooses the node by, for all keys of a subject.
    let tagDigits: [UInt8]
    /// Tells subjects apart whose tags are the same.
    let name: [UInt8]

    init(_ subject: String) {
        tag = Array(SHA256.digest(Array("martlet subject tag".utf8) + subject.utf8).prefix(SubjectPlace.tagLength))
        tagDigits = Hexadecimal.encode(tag)
        name = Hexadecimal.encode(SHA256.digest(Array("martlet subject index".utf8) + subject.utf8).prefix(16))
    }
}

/// Where one session is filed: under the SHA-256 of the lookup half of its tokens.
package struct SessionPlace: Sendable {
    let tagDigits: [UInt8]
    /// 64 digits.
    let filing: [UInt8]
    /// What revocations call it.
    let number: UInt64

    init(lookup: [UInt8]) {
        let hash = SHA256.digest(lookup)
        tagDigits = Hexadecimal.encode(lookup.prefix(SubjectPlace.tagLength))
        filing = Hexadecimal.encode(hash)
        number = hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The place of a session that an index names.
    init(tagDigits: [UInt8], filing: [UInt8]) {
        self.tagDigits = tagDigits
        self.filing = filing
        number = Hexadecimal.value(filing.prefix(16)) ?? 0
    }

    /// `ses_…`, as clients and headers see it.
    var id: String { SessionPlace.id(of: filing) }

    /// The part of the key's name that comes from the token: what every sealed value is bound to.
    var name: [UInt8] { Array("{".utf8) + tagDigits + "}:s:".utf8 + filing }

    static let idDigits = 32
    private static let idPrefix = "ses_"

    static func id(of filing: some Collection<UInt8>) -> String {
        idPrefix + String(decoding: filing.prefix(idDigits), as: UTF8.self)
    }

    /// The digits of an id; `nil` for what is none.
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
