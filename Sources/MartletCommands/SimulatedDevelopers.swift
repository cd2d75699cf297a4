internal import MartletCore
internal import MartletCrypto
internal import MartletSimulator

/// What `martlet simulate apple` is given: the keys of a team, and limits.
struct SimulatedDevelopers {
    private static let limits = 0...1000

    /// A key of `--key`.
    struct Key {
        let key: DeveloperKey
        /// As it was typed.
        let file: String
    }

    /// Empty: the simulator generates a key.
    let keys: [Key]
    /// How often a refresh token may be verified within a day; `nil` is no limit.
    let refreshesPerDay: Int?

    /// Reads `--team`, `--key` and `--refresh-limit`.
    /// - Throws: `UsageError`, without repeating arguments.
    init(_ options: Options) throws(Options.UsageError) {
        let specifications = options.all("key")
        guard specifications.isEmpty == (options["team"] == nil) else {
            throw Options.UsageError(message: "--team and --key require each other")
        }
        var keys: [Key] = []
        for specification in specifications {
            let key = try Self.key(specification, team: options["team"] ?? "")
            guard !keys.contains(where: { $0.key.keyID == key.key.keyID }) else {
                throw Options.UsageError(message: "two --key options have the same id")
            }
            keys.append(key)
        }
        self.keys = keys
        refreshesPerDay = try options["refresh-limit"].map { text throws(Options.UsageError) in
            guard let limit = Int(text), Self.limits.contains(limit) else {
                throw Options.UsageError(message: "--refresh-limit requires a number from 0 to 1000")
            }
            return limit
        }
    }

    /// Reads `KEYID=FILE`.
    private static func key(_ text: String, team: String) throws(Options.UsageError) -> Key {
        let parts = text.split(separator: "=", maxSplits: 1).map { String($0) }
        guard parts.count == 2, DeveloperKey.isIdentifier(parts[0]), DeveloperKey.isIdentifier(team) else {
            throw Options.UsageError(
                message: "--key requires KEYID=FILE; the ids of teams and keys are ten characters of A-Z 0-9")
        }
        let pem: [UInt8]
        do throws(ArgumentFileError) { pem = try ArgumentFile.read(parts[1], "the file of --key") } catch {
            throw Options.UsageError(message: error.message)
        }
        guard let publicKey = try? PublicKey(pem: Secret(pem + [0x0A])),
            let key = DeveloperKey(teamID: team, keyID: parts[0], publicKey: publicKey)
        else { throw Options.UsageError(message: "the file of --key is not the PEM of a P-256 key") }
        return Key(key: key, file: parts[1])
    }
}
