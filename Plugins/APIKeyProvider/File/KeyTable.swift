internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// The keys of a file: one JSON object a line. Pure text, no I/O.
package struct KeyTable: Sendable, Equatable {
    /// An error, with the number of its line.
    package struct LineError: Error, Equatable {
        /// `nil` if it is about the file.
        let line: Int?
        let reason: String
    }

    /// All errors of a file.
    package struct ParseError: Error, Equatable, CustomStringConvertible {
        /// The most that are reported.
        static let maximum = 10

        let errors: [LineError]

        package var description: String {
            guard let first = errors.first else { return "not usable" }
            let rest = errors.count > 1 ? " (and \(errors.count - 1) more)" : ""
            return (first.line.map { "line \($0): " } ?? "") + first.reason + rest
        }
    }

    static let maximumLineBytes = 64 * 1024
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: maximumLineBytes)

    private(set) var keys: [String: APIKeyRecord] = [:]

    init() {}

    /// Parses the lines of a file; empty ones are skipped.
    /// - Throws: all errors, up to a maximum.
    package init(_ bytes: [UInt8]) throws(ParseError) {
        var errors: [LineError] = []
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where errors.count < ParseError.maximum {
            let line = line.last == 0x0D ? line.dropLast() : line
            guard line.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { continue }
            do throws(LineError) {
                let record = try Self.record(Array(line))
                guard keys.updateValue(record, forKey: record.id) == nil else {
                    throw LineError(line: nil, reason: "the id '\(record.id)' is that of a line before")
                }
            } catch {
                errors.append(LineError(line: index + 1, reason: error.reason))
            }
        }
        if !errors.isEmpty { throw ParseError(errors: errors) }
    }

    var sorted: [APIKeyRecord] { keys.values.sorted { $0.id < $1.id } }

    /// The text of the file.
    package var bytes: [UInt8] { sorted.flatMap { JSON.write(Self.line($0)) + [0x0A] } }

    /// The keys that are new, different or gone in another table, as they are there; those that are gone as here.
    func differences(to other: KeyTable) -> [APIKeyRecord] {
        other.keys.values.filter { keys[$0.id] != $0 } + keys.values.filter { other.keys[$0.id] == nil }
    }

    /// Adds a key, or replaces it.
    mutating func set(_ record: APIKeyRecord) { keys[record.id] = record }
}

// MARK: - Lines

extension KeyTable {
    private enum Member: String, CaseIterable {
        case id, sha256, subject, account, claims, scopes
        case createdAt = "created_at"
        case rotatedAt = "rotated_at"
        case expiresAt = "expires_at"
        case revokedAt = "revoked_at"
        case previous = "previous_sha256"
        case previousUntil = "previous_until"
    }

    private static func line(_ key: APIKeyRecord) -> JSONObject {
        var line = JSONObject()
        func set(_ member: Member, _ value: JSONValue?) { if let value { line[member.rawValue] = value } }
        func time(_ instant: UnixTime?) -> JSONValue? { instant.map { .integer($0.seconds) } }
        set(.id, .string(key.id))
        set(.sha256, .string(Hexadecimal.text(key.digest)))
        set(.subject, .string(key.subject))
        set(.account, key.isAccount ? .bool(true) : nil)
        set(.claims, key.claims.isEmpty ? nil : .object(key.claims))
        set(.scopes, key.scopes.isEmpty ? nil : .array(key.scopes.map { .string($0) }))
        set(.createdAt, time(key.createdAt))
        set(.rotatedAt, time(key.rotatedAt))
        set(.expiresAt, time(key.expiresAt))
        set(.revokedAt, time(key.revokedAt))
        set(.previous, key.previous.map { .string(Hexadecimal.text($0.digest)) })
        set(.previousUntil, time(key.previous?.endsAt))
        return line
    }

    private static func record(_ bytes: [UInt8]) throws(LineError) -> APIKeyRecord {
        guard let object = (try? JSON.parse(bytes, limits: limits))?.object else {
            throw LineError(line: nil, reason: "not a JSON object of at most \(maximumLineBytes) bytes")
        }
        for member in object.members where Member(rawValue: member.name) == nil {
            throw LineError(line: nil, reason: "unknown member '\(member.name.prefix(40))'")
        }
        let line = LineReader(object: object)
        let scopes = try line.texts(Member.scopes.rawValue)
        guard scopes.count <= APIKeyRules.maximumScopes, scopes.allSatisfy(APIKeyRules.isScope) else {
            throw LineError(line: nil, reason: "scopes: not a list of scopes")
        }
        let subject = try line.text(Member.subject.rawValue)
        guard APIKeyRules.isSubject(subject) else { throw LineError(line: nil, reason: "subject: cannot be one") }
        let claims = try line.claims(Member.claims.rawValue)
        var record = APIKeyRecord(
            id: try line.id(Member.id.rawValue), digest: try line.digest(Member.sha256.rawValue), subject: subject,
            isAccount: try line.flag(Member.account.rawValue), claims: claims, scopes: scopes,
            createdAt: try line.time(Member.createdAt.rawValue),
            expiresAt: try line.optionalTime(Member.expiresAt.rawValue))
        record.rotatedAt = try line.optionalTime(Member.rotatedAt.rawValue)
        record.revokedAt = try line.optionalTime(Member.revokedAt.rawValue)
        if object.has(Member.previous.rawValue) || object.has(Member.previousUntil.rawValue) {
            record.previous = APIKeyRecord.Previous(
                digest: try line.digest(Member.previous.rawValue), endsAt: try line.time(Member.previousUntil.rawValue))
        }
        return record
    }

    /// Reads the members of one line.
    private struct LineReader {
        let object: JSONObject

        private func bad(_ name: String, _ expected: String) -> LineError {
            LineError(line: nil, reason: "\(name): must be \(expected)")
        }

        func text(_ name: String) throws(LineError) -> String {
            guard let text = object[name]?.string else { throw bad(name, "a text") }
            return text
        }

        func id(_ name: String) throws(LineError) -> String {
            let id = try text(name)
            guard Hexadecimal.bytes(id)?.count == 8 else { throw bad(name, "16 hexadecimal digits") }
            return id
        }

        func digest(_ name: String) throws(LineError) -> [UInt8] {
            guard let bytes = Hexadecimal.bytes(try text(name)), bytes.count == 32 else {
                throw bad(name, "64 hexadecimal digits")
            }
            return bytes
        }

        func flag(_ name: String) throws(LineError) -> Bool {
            guard let value = object[name] else { return false }
            guard let flag = value.bool else { throw bad(name, "true or false") }
            return flag
        }

        func optionalTime(_ name: String) throws(LineError) -> UnixTime? {
            guard let value = object[name] else { return nil }
            guard let seconds = value.int64, seconds >= 0 else { throw bad(name, "seconds since 1970") }
            return UnixTime(seconds: seconds)
        }

        func time(_ name: String) throws(LineError) -> UnixTime {
            guard let time = try optionalTime(name) else { throw bad(name, "seconds since 1970") }
            return time
        }

        func texts(_ name: String) throws(LineError) -> [String] {
            guard let value = object[name] else { return [] }
            guard let list = value.array else { throw bad(name, "a list of texts") }
            let texts = list.compactMap(\.string)
            guard texts.count == list.count else { throw bad(name, "a list of texts") }
            return texts
        }

        func claims(_ name: String) throws(LineError) -> JSONObject {
            guard let value = object[name] else { return [:] }
            guard let claims = value.object else { throw bad(name, "an object") }
            guard !claims.members.contains(where: { APIKeyRules.ownClaims.contains($0.name) }) else {
                throw bad(name, "without \(APIKeyRules.ownClaims.sorted().joined(separator: " and "))")
            }
            return claims
        }
    }
}
