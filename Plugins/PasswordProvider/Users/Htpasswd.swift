package import MartletCrypto

/// A parsed htpasswd file: one `name:hash` per line, with the hashes that ``PasswordHash`` accepts.
package struct Htpasswd: Sendable {
    /// An error in one line, or in the file as a whole.
    package struct LineError: Error, Sendable, CustomStringConvertible {
        /// From 1; `nil` for the file as a whole.
        package let line: Int?
        /// Never contains a name or a hash.
        package let reason: String

        package init(line: Int?, _ reason: String) {
            self.line = line
            self.reason = reason
        }

        package var description: String { line.map { "line \($0): \(reason)" } ?? reason }
    }

    private enum Limits {
        static let lineBytes = 1024
        static let users = 200_000
        /// The most errors that are reported.
        static let errors = 20
    }

    /// By name, compared byte by byte: strings with and without composed accents would be equal.
    private let users: [[UInt8]: PasswordHash]
    /// A hash of the most common cost, so that checking an unknown user takes as long as most known ones.
    let typical: PasswordHash?
    /// Lines with a bcrypt hash of a cost below 10.
    package let weakLines: [Int]

    /// Parses a whole file.
    /// - Throws: all errors, at most 20.
    package init(_ bytes: [UInt8]) throws(ParseError) {
        var users: [[UInt8]: PasswordHash] = [:]
        var errors: [LineError] = []
        var weak: [Int] = []
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, raw) in lines.enumerated() where errors.count < Limits.errors {
            let number = index + 1
            do throws(LineError) {
                guard let (name, hash) = try Self.entry(raw, number) else { continue }
                guard users[name] == nil else { throw LineError(line: number, "duplicate user") }
                guard users.count < Limits.users else {
                    throw LineError(line: number, "more than \(Limits.users) users")
                }
                users[name] = hash
                if let cost = hash.work.bcryptCost, cost < 10 { weak.append(number) }
            } catch {
                errors.append(error)
            }
        }
        guard errors.isEmpty else { throw ParseError(errors: errors) }
        self.users = users
        weakLines = weak
        typical = Self.typical(of: users.values)
    }

    /// Why a file cannot be used.
    package struct ParseError: Error, Sendable, CustomStringConvertible {
        package let errors: [LineError]

        package var description: String { errors.map(\.description).joined(separator: "; ") }
    }

    /// The number of users.
    package var count: Int { users.count }

    /// The hash of a user, by the exact name.
    package func hash(of name: [UInt8]) -> PasswordHash? { users[name] }

    private static func entry(_ raw: ArraySlice<UInt8>, _ number: Int) throws(LineError) -> ([UInt8], PasswordHash)? {
        let line = raw.last == UInt8(ascii: "\r") ? raw.dropLast() : raw
        guard !line.isEmpty, line.first != UInt8(ascii: "#") else { return nil }
        guard line.count <= Limits.lineBytes else {
            throw LineError(line: number, "longer than \(Limits.lineBytes) bytes")
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw LineError(line: number, "missing colon") }
        let name = Array(line[..<colon])
        if let reason = nameError(name) { throw LineError(line: number, reason) }
        do { return (name, try PasswordHash(Array(line[(colon + 1)...]))) } catch {
            throw LineError(line: number, error.message)
        }
    }

    private static func nameError(_ name: [UInt8]) -> String? {
        guard !name.isEmpty else { return "empty name" }
        guard name.count <= UserName.maximumBytes else { return "a name longer than \(UserName.maximumBytes) bytes" }
        guard let text = String(validating: name, as: UTF8.self) else { return "a name that is not UTF-8" }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            return "a name with a control character"
        }
        guard name.first != UInt8(ascii: " "), name.last != UInt8(ascii: " ") else {
            return "a name that begins or ends with a space"
        }
        return nil
    }

    private static func typical(of hashes: some Collection<PasswordHash>) -> PasswordHash? {
        var counts: [PasswordHash.Work: Int] = [:]
        for hash in hashes { counts[hash.work, default: 0] += 1 }
        let most = counts.max { $0.value < $1.value }?.key
        return hashes.first { $0.work == most }
    }
}
