private import MartletCrypto
private import MartletJSON

/// The usable keys of a JWKS document (RFC 7517 §5), by their IDs.
public struct KeySet: Sendable {
    /// The maximum size of a document in bytes.
    public static let maximumBytes = 64 * 1024
    /// The maximum number of keys in a document.
    public static let maximumKeys = 20

    /// A key that was skipped.
    public struct Skipped: Sendable {
        /// Its `kid`, if it has a valid one.
        public let id: KeyID?
        /// Why it was skipped, for operators.
        public let reason: String
    }

    public let keys: [KeyID: VerificationKey]
    public let skipped: [Skipped]

    /// The key, if there is exactly one.
    public var onlyKey: VerificationKey? { keys.count == 1 ? keys.first?.value : nil }

    /// Parses a document, skipping keys that cannot be used.
    ///
    /// - Parameters:
    ///   - document: the JSON bytes.
    ///   - allowed: the algorithms whose keys are used.
    /// - Throws: `bad_key_set` for a document over 64 KiB or 20 keys, that is not a key set, or that has no usable key.
    public init(document: [UInt8], allowing allowed: Set<SignatureAlgorithm>) throws(JOSEError) {
        let entries = try Self.entries(of: document)
        let ids = entries.map { Self.id(of: $0.object ?? [:], isOnlyOne: entries.count == 1) }
        var keys: [KeyID: VerificationKey] = [:]
        var skipped: [Skipped] = []
        for (entry, id) in zip(entries, ids) {
            do throws(SkippedKey) {
                guard let id else { throw SkippedKey("it has no valid kid") }
                guard ids.count(where: { $0 == id }) == 1 else { throw SkippedKey("another key has the same kid") }
                keys[id] = try Self.key(entry.object ?? [:], id: id, allowed: allowed)
            } catch {
                skipped.append(Skipped(id: id, reason: error.reason))
            }
        }
        guard !keys.isEmpty else { throw JOSEError(.badKeySet, "the document has no usable key") }
        self.keys = keys
        self.skipped = skipped
    }

    /// The ID of a key; its thumbprint if it has none, and no other key could be meant.
    private static func id(of entry: JSONObject, isOnlyOne: Bool) -> KeyID? {
        guard isOnlyOne, !entry.has("kid") else { return entry["kid"]?.string.flatMap { KeyID($0) } }
        return (try? PublicKeyParts(jwk: entry)).flatMap { KeyID($0.thumbprint) }
    }

    private static func entries(of document: [UInt8]) throws(JOSEError) -> [JSONValue] {
        let value: JSONValue
        do { value = try JSON.parse(document, limits: JSONLimits(maximumDepth: 8, maximumBytes: maximumBytes)) } catch {
            throw JOSEError(.badKeySet, "the document is not JSON: \(error)")
        }
        guard let entries = value.object?["keys"]?.array else {
            throw JOSEError(.badKeySet, "the document has no list of keys")
        }
        guard entries.count <= maximumKeys else {
            throw JOSEError(.badKeySet, "the document has \(entries.count) keys")
        }
        return entries
    }

    private struct SkippedKey: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// A key is for the algorithm that its entry names. Without `alg` it is for that of its curve, or for all of RSA;
    /// in either case only for those that are allowed.
    private static func key(
        _ entry: JSONObject, id: KeyID, allowed: Set<SignatureAlgorithm>
    ) throws(SkippedKey) -> VerificationKey {
        let parts: PublicKeyParts
        do throws(JOSEError) { parts = try PublicKeyParts(jwk: entry) } catch { throw SkippedKey(error.message) }
        if let use = entry["use"], use != "sig" { throw SkippedKey("it is not for signatures") }
        if let operations = entry["key_ops"], operations.array?.contains("verify") != true {
            throw SkippedKey("it is not for verifying")
        }
        var algorithms = parts.algorithms
        if let name = entry["alg"] {
            algorithms = algorithms.filter { name == .string($0.rawValue) }
            guard !algorithms.isEmpty else { throw SkippedKey("it is for another algorithm") }
        }
        guard algorithms.contains(where: allowed.contains) else {
            throw SkippedKey("\(algorithms.map(\.rawValue).joined(separator: ", ")) is not allowed")
        }
        do throws(CryptoError) {
            return try VerificationKey(id: id, parts: parts, allowing: allowed.intersection(algorithms))
        } catch { throw SkippedKey("\(error)") }
    }
}
