package import MartletCrypto

/// What an htpasswd file says: `name:hash` a line, with the hashes that ``PasswordHash`` accepts.
package struct Htpasswd: Sendable {
    /// Something wrong, or doubtful, in the file.
    package struct Flaw: Error, Sendable, CustomStringConvertible {
        /// From 1; `nil` for the file as a whole.
        package let line: Int?
        /// Never holds a name or a hash.
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
        /// As many as anybody reads.
        static let flaws = 20
    }

    /// By name, byte by byte: equality of texts would take `é` for `e` and an accent.
    private let users: [[UInt8]: PasswordHash]
    /// The hash whose work most users' have: an unknown user takes as long as most known ones.
    let typical: PasswordHash?
    /// Lines whose hash is weaker than anybody should have.
    package let weakLines: [Int]

    /// Reads a file whole.
    /// - Throws: everything that is wrong, at most 20 of it.
    package init(_ bytes: [UInt8]) throws(Flaws) {
        var users: [[UInt8]: PasswordHash] = [:]
        var flaws: [Flaw] = []
        var weak: [Int] = []
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, raw) in lines.enumerated() where flaws.count < Limits.flaws {
            let number = index + 1
            do throws(Flaw) {
                guard let (name, hash) = try Self.entry(raw, number) else { continue }
                guard users[name] == nil else { throw Flaw(line: number, "a user who has a line already") }
                guard users.count < Limits.users else { throw Flaw(line: number, "more than \(Limits.users) users") }
                users[name] = hash
                if let cost = hash.work.bcryptCost, cost < 10 { weak.append(number) }
            } catch {
                flaws.append(error)
            }
        }
        guard flaws.isEmpty else { throw Flaws(all: flaws) }
        self.users = users
        weakLines = weak
        typical = Self.typical(of: users.values)
    }

    /// Why a file was refused.
    package struct Flaws: Error, Sendable, CustomStringConvertible {
        package let all: [Flaw]

        package var description: String { all.map(\.description).joined(separator: "; ") }
    }

    /// How many users there are.
    package var count: Int { users.count }

    /// The hash of a user, by the exact name.
    package func hash(of name: [UInt8]) -> PasswordHash? { users[name] }

    private static func entry(_ raw: ArraySlice<UInt8>, _ number: Int) throws(Flaw) -> ([UInt8], PasswordHash)? {
        let line = raw.last == UInt8(ascii: "\r") ? raw.dropLast() : raw
        guard !line.isEmpty, line.first != UInt8(ascii: "#") else { return nil }
        guard line.count <= Limits.lineBytes else { throw Flaw(line: number, "longer than \(Limits.lineBytes) bytes") }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw Flaw(line: number, "no colon") }
        let name = Array(line[..<colon])
        if let reason = flaw(inName: name) { throw Flaw(line: number, reason) }
        do {
            return (name, try PasswordHash(Array(line[(colon + 1)...])))
        } catch {
            throw Flaw(line: number, error.message)
        }
    }

    private static func flaw(inName name: [UInt8]) -> String? {
        guard !name.isEmpty else { return "no name" }
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
