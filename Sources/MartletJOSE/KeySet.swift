private import MartletCrypto
private import MartletJSON

/// The usable keys of a JWKS document (RFC 7517 §5), by their IDs; keys with one ID are one, which tries each of them.
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
        /// Whether it is a good key for something else: for encryption, or with an algorithm that is not allowed.
        public let isOfAnotherUse: Bool
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
        var usable: [(id: KeyID?, key: VerificationKey)] = []
        var skipped: [Skipped] = []
        // What cannot verify a signature is no second key, whatever its ID.
        for entry in try Self.entries(of: document) {
            let entry = entry.object ?? [:]
            let id = entry["kid"]?.string.flatMap { KeyID($0) }
            do throws(SkippedKey) {
                usable.append((id, try Self.key(entry, id: id, allowed: allowed)))
            } catch {
                skipped.append(Skipped(id: id, reason: error.reason, isOfAnotherUse: error.isOfAnotherUse))
            }
        }
        var keys: [KeyID: VerificationKey] = [:]
        for (id, key) in usable {
            // Without an ID of its own it has its thumbprint, if no other key could be meant.
            guard id != nil || usable.count == 1 else {
                let reason = "it has no kid, and there are others"
                skipped.append(Skipped(id: nil, reason: reason, isOfAnotherUse: false))
                continue
            }
            guard let all = keys[key.id].map({ $0.adding(key) }) ?? key else {
                skipped.append(Skipped(id: key.id, reason: "too many keys have this kid", isOfAnotherUse: false))
                continue
            }
            keys[key.id] = all
        }
        guard !keys.isEmpty else {
            let reasons = skipped.prefix(3).map(\.reason).joined(separator: "; ")
            throw JOSEError(
                .badKeySet, "the document has no usable key" + (reasons.isEmpty ? "" : " (skipped: \(reasons))"))
        }
        self.keys = keys
        self.skipped = skipped
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
        var isOfAnotherUse = false

        init(_ reason: String) { self.reason = reason }

        static func ofAnotherUse(_ reason: String) -> SkippedKey {
            var error = SkippedKey(reason)
            error.isOfAnotherUse = true
            return error
        }
    }

    /// A key is for the algorithm that its entry names. Without `alg` it is for that of its curve, or for all of RSA;
    /// in either case only for those that are allowed.
    private static func key(
        _ entry: JSONObject, id: KeyID?, allowed: Set<SignatureAlgorithm>
    ) throws(SkippedKey) -> VerificationKey {
        guard id != nil || !entry.has("kid") else { throw SkippedKey("it has no valid kid") }
        let parts: PublicKeyParts
        do throws(JOSEError) { parts = try PublicKeyParts(jwk: entry) } catch { throw SkippedKey(error.message) }
        if let use = entry["use"], use != "sig" { throw .ofAnotherUse("it is not for signatures") }
        if let operations = entry["key_ops"], operations.array?.contains("verify") != true {
            throw .ofAnotherUse("it is not for verifying")
        }
        var algorithms = parts.algorithms
        if let name = entry["alg"] {
            algorithms = algorithms.filter { name == .string($0.rawValue) }
            guard !algorithms.isEmpty else { throw .ofAnotherUse("it is for another algorithm") }
        }
        guard algorithms.contains(where: allowed.contains) else {
            throw .ofAnotherUse("\(algorithms.map(\.rawValue).joined(separator: ", ")) is not allowed")
        }
        guard let id = id ?? KeyID(parts.thumbprint) else { throw SkippedKey("it has no valid kid") }
        do throws(CryptoError) {
            return try VerificationKey(id: id, parts: parts, allowing: allowed.intersection(algorithms))
        } catch { throw SkippedKey("\(error)") }
    }
}
