public import MartletCore

extension Located<Secret> {
    /// What a required secret is before it was read.
    static let unread = Located(Secret([]), at: .none)
}

extension ConfigurationReader {
    /// A required secret, given inline as `x` or as the path of a file in `x_file`.
    ///
    /// A trailing newline of the file is removed.
    /// - Throws: `config.missing_key`, `config.conflicting_keys` if both are given, `config.file_unreadable`,
    ///   or `config.bad_value` for an empty secret.
    public mutating func secret(_ key: String) throws(ConfigurationError) -> Located<Secret> {
        guard let secret = try readSecret(key) else {
            throw ConfigurationError(
                .configMissingKey, at: location, "missing key '\(key)' or '\(key)_file' in \(title)")
        }
        return secret
    }

    /// An optional secret; `nil` if neither `x` nor `x_file` is given. Errors are recorded.
    public mutating func optionalSecret(_ key: String) -> Located<Secret>? {
        do { return try readSecret(key) } catch {
            diagnostics.add(error)
            invalidKeys.formUnion([key, "\(key)_file"])
            return nil
        }
    }

    /// The path under a required key, resolved against the configuration file, of a file that is opened later.
    /// - Throws: `config.missing_key`, or the error of the value.
    public mutating func path(_ key: String) throws(ConfigurationError) -> Located<FilePath> { try required(key) }

    private mutating func readSecret(_ key: String) throws(ConfigurationError) -> Located<Secret>? {
        let fileKey = "\(key)_file"
        let (inline, file) = (entry(key), entry(fileKey))
        if inline != nil, let file {
            throw ConfigurationError(
                .configConflictingKeys, at: file.key.location, "'\(fileKey)' and '\(key)' are both given in \(title)")
        }
        if let node = inline?.value {
            return try labeled(key) { () throws(ConfigurationError) in
                let text = try node.scalar(expecting: "a string").text
                guard !text.isEmpty else { throw node.error(.configBadValue, "must not be empty") }
                if Self.looksLikeVariable(text) {
                    diagnostics.warning(
                        .configBadValue, at: node.location,
                        "\(key): is taken as it is written; a variable of the environment is ${NAME}")
                }
                return Located(Secret(text), at: node.location)
            }
        }
        guard let node = file?.value else { return nil }
        let secret = try labeled(fileKey) { () throws(ConfigurationError) in
            Located(try Self.fileSecret(node), at: node.location)
        }
        warn(of: secret.value, in: node)
        return secret
    }

    /// `$NAME`, as shells write a variable.
    private static func looksLikeVariable(_ text: String) -> Bool {
        let name = text.utf8.dropFirst()
        return text.utf8.first == UInt8(ascii: "$") && !name.isEmpty
            && name.allSatisfy { (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) || $0 == UInt8(ascii: "_") }
    }

    /// The secret in a file; `nil` without the key, or if the file is unusable, which is recorded.
    mutating func privateFile(_ key: String) -> Located<Secret>? {
        guard let node = node(key) else { return nil }
        let secret = recorded(key) { () throws(ConfigurationError) in
            Located(try Self.fileSecret(node), at: node.location)
        }
        if let secret { warn(of: secret.value, in: node) }
        return secret
    }

    /// The secrets in a list of files; an unusable file is recorded and omitted.
    /// - Parameter arePrivate: whether all of them need protection; otherwise private keys in PEM alone.
    mutating func secretFiles(_ key: String, arePrivate: Bool = false) -> [Located<Secret>] {
        guard let node = node(key) else { return [] }
        guard let elements = node.elements else {
            diagnostics.add(node.mismatch("\(key): ", mustBe: "a list"))
            return []
        }
        return elements.compactMap { element in
            let secret = recorded(key) { () throws(ConfigurationError) in
                Located(try Self.fileSecret(element), at: element.location)
            }
            // Public keys need no protection.
            let isPrivate = arePrivate || secret?.value.withBytes { Self.holdsPrivateKey($0) } ?? false
            if isPrivate { warnOfExposure(element) }
            return secret
        }
    }

    /// Reads the file of a secret again, after it may have been replaced.
    /// - Returns: `nil` if it is unusable now.
    package static func secret(in path: FilePath) -> Secret? {
        guard let bytes = try? readWholeFile(path.text, limit: 64 * 1024) else { return nil }
        let secret = withoutTrailingNewline(bytes)
        return secret.isEmpty ? nil : Secret(secret)
    }

    /// Warns of what a file with a secret should not be: readable by others, or ending in white space, which belongs to
    /// the secret. A key in PEM has line breaks anyway.
    private mutating func warn(of secret: Secret, in node: ConfigurationNode) {
        warnOfExposure(node)
        let endsInSpace = secret.withBytes { bytes in
            guard let last = bytes.last, let first = bytes.first else { return false }
            let isText = [0x09, 0x0A, 0x0D, 0x20].contains(last) || [0x09, 0x0A, 0x0D, 0x20].contains(first)
            return isText && !bytes.starts(with: Array("-----BEGIN".utf8))
        }
        guard endsInSpace, let path = try? FilePath(decoding: node) else { return }
        diagnostics.warning(
            .configBadValue, at: node.location,
            "\(quoted(path.text)) begins or ends with white space, or with more than one line break, which belongs to the "
                + "secret")
    }

    private mutating func warnOfExposure(_ node: ConfigurationNode) {
        if let path = try? FilePath(decoding: node) { diagnostics.warnOfExposure(path.text, at: node.location) }
    }

    private static func holdsPrivateKey(_ bytes: [UInt8]) -> Bool {
        let mark = Array("PRIVATE KEY-----".utf8)
        return bytes.indices.contains { bytes[$0...].starts(with: mark) }
    }

    /// The content of the file that a node names, without a trailing newline.
    private static func fileSecret(_ node: ConfigurationNode) throws(ConfigurationError) -> Secret {
        let path = try FilePath(decoding: node)
        let bytes: [UInt8]
        do throws(FileReadError) { bytes = try readWholeFile(path.text, limit: 64 * 1024) } catch {
            throw node.error(.configFileUnreadable, "cannot read \(quoted(path.text)): \(error.reason)")
        }
        let secret = withoutTrailingNewline(bytes)
        guard !secret.isEmpty else { throw node.error(.configBadValue, "\(quoted(path.text)) is empty") }
        return Secret(secret)
    }

    private static func withoutTrailingNewline(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.last == 0x0A else { return bytes }
        let line = bytes.dropLast()
        return Array(line.last == 0x0D ? line.dropLast() : line)
    }
}
