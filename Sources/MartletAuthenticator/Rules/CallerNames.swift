package import MartletConfig
package import MartletCore
internal import MartletCrypto

/// How the access log names callers, by `log.subject`.
///
/// The names are written as they stand in a JSON line, when a decision is cached: requests only copy them.
package struct CallerNames: Sendable {
    private static let opening: StaticString = "\",\"subject\":\""
    private static let separator: StaticString = "\",\"session_id\":\""
    private static let maximumSubjectBytes = 256
    /// 128 bits of the HMAC, as hexadecimal digits.
    private static let hashBytes = 16

    private enum Form: Sendable {
        case full
        case hash(Secret)
        case off
    }

    private let form: Form

    /// Whether it writes hashes in place of subjects.
    package var areHashed: Bool {
        if case .hash = form { return true }
        return false
    }

    /// Full names.
    package init() { form = .full }

    package init(_ log: LogConfiguration) {
        switch (log.subject, log.subjectKey) {
        case (.full, _): form = .full
        case (.hash, let key?): form = .hash(key)
        case (.off, _), (.hash, nil): form = .off
        }
    }

    /// Writes the names of a caller; nothing if they are not logged.
    /// - Parameter sessionID: `nil` without a session.
    package func write(subject: String, sessionID: String?, into out: inout ByteBuffer) {
        switch form {
        case .off: return
        case .full:
            out.append(Self.opening)
            Self.append(subject, to: &out)
        case .hash(let key):
            out.append(Self.opening)
            for byte in HMACSHA256.authenticate(Array(subject.utf8), key: key).prefix(Self.hashBytes) {
                out.append(Self.digit(byte >> 4, "a"))
                out.append(Self.digit(byte & 0x0F, "a"))
            }
        }
        out.append(Self.separator)
        Self.append(sessionID ?? "", to: &out)
    }

    /// A subject as lines name it; `nil` if they do not.
    package func name(of subject: String) -> String? {
        var out = ByteBuffer()
        write(subject: subject, sessionID: nil, into: &out)
        guard let parts = unsafe Self.parts(of: out.bytes) else { return nil }
        return String(decoding: out.array[parts.subject], as: UTF8.self)
    }

    /// Appends a text: visible ASCII as it is, `%XX` for other bytes and for quotes, backslashes and percent signs.
    private static func append(_ text: String, to out: inout ByteBuffer) {
        for byte in text.utf8.prefix(maximumSubjectBytes) {
            if (0x21...0x7E).contains(byte), byte != 0x22, byte != 0x25, byte != 0x5C {
                out.append(byte)
            } else {
                out.append(0x25 as UInt8)
                out.append(digit(byte >> 4, "A"))
                out.append(digit(byte & 0x0F, "A"))
            }
        }
    }

    private static func digit(_ value: UInt8, _ ten: Unicode.Scalar) -> UInt8 {
        value < 10 ? value &+ 0x30 : value &- 10 &+ UInt8(ascii: ten)
    }

    /// The names in a written text; `nil` for an empty one.
    package static func parts(
        of written: UnsafeBufferPointer<UInt8>
    ) -> (subject: Range<Int>, session: Range<Int>)? {
        let start = opening.utf8CodeUnitCount
        guard written.count >= start + separator.utf8CodeUnitCount else { return nil }
        // A written subject contains no quotes.
        var end = start
        while end < written.count, unsafe written[end] != 0x22 { end += 1 }
        let session = end + separator.utf8CodeUnitCount
        guard session <= written.count else { return nil }
        return (start..<end, session..<written.count)
    }
}
