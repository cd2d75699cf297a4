extension ConfigurationReader {
    /// The value of a required key.
    /// - Throws: `config.missing_key`, or the error of the value.
    public mutating func required<Value: ConfigurationValue>(
        _ key: String, as type: Value.Type = Value.self
    ) throws(ConfigurationError) -> Value {
        let node = try requiredNode(key)
        return try labeled(key) { () throws(ConfigurationError) in try Value(decoding: node) }
    }

    /// The value of a required key, within bounds.
    /// - Throws: `config.missing_key`, or the error of the value.
    public mutating func required<Value: ConfigurationQuantity>(
        _ key: String, as type: Value.Type = Value.self, in range: ClosedRange<Value>
    ) throws(ConfigurationError) -> Value {
        let node = try requiredNode(key)
        return try labeled(key) { () throws(ConfigurationError) in try Value(decoding: node, in: range) }
    }

    /// The value of an optional key; `nil` if it is absent or invalid. Errors are recorded.
    public mutating func optional<Value: ConfigurationValue>(_ key: String, as type: Value.Type = Value.self) -> Value?
    {
        value(key) { node throws(ConfigurationError) in try Value(decoding: node) }
    }

    /// The value of an optional key, within bounds; `nil` if it is absent or invalid. Errors are recorded.
    public mutating func optional<Value: ConfigurationQuantity>(
        _ key: String, as type: Value.Type = Value.self, in range: ClosedRange<Value>
    ) -> Value? {
        value(key) { node throws(ConfigurationError) in try Value(decoding: node, in: range) }
    }

    /// The value of an optional key, or the default if it is absent or invalid. Errors are recorded.
    public mutating func optional<Value: ConfigurationValue>(_ key: String, default value: Value) -> Value {
        optional(key, as: Value.self) ?? value
    }

    /// The value of an optional key, within bounds, or the default if it is absent or invalid. Errors are recorded.
    public mutating func optional<Value: ConfigurationQuantity>(
        _ key: String, default value: Value, in range: ClosedRange<Value>
    ) -> Value {
        optional(key, as: Value.self, in: range) ?? value
    }

    /// The value of an optional key; `nil` if it is absent or invalid, which is recorded.
    mutating func value<Value>(
        _ key: String, _ decode: (ConfigurationNode) throws(ConfigurationError) -> Value
    ) -> Value? {
        guard let node = node(key) else { return nil }
        return recorded(key) { () throws(ConfigurationError) in try decode(node) }
    }

    /// The node of a key whose value was read; `nil` if it is absent or invalid.
    mutating func given(_ key: String) -> ConfigurationNode? { invalidKeys.contains(key) ? nil : node(key) }

    mutating func requiredNode(_ key: String) throws(ConfigurationError) -> ConfigurationNode {
        if let node = node(key) { return node }
        // Report a misspelled key instead of the missing key that it causes.
        for entry in entries.prefix(Suggestion.maximumCandidates) where !isKnown(entry.key.value) {
            guard Suggestion.nearest(to: entry.key.value, among: [key]) != nil else { continue }
            reportedKeys.insert(entry.key.value)
            throw ConfigurationError(
                .configUnknownKey, at: entry.key.location,
                "unknown key \(quoted(entry.key.value)) in \(title) (did you mean '\(key)'?)")
        }
        throw ConfigurationError(.configMissingKey, at: location, "missing key '\(key)' in \(title)")
    }

    /// Runs a decoding step of a key and prefixes its errors with the key's name.
    func labeled<Value>(
        _ key: String, _ decode: () throws(ConfigurationError) -> Value
    ) throws(ConfigurationError) -> Value {
        do { return try decode() } catch {
            throw ConfigurationError(
                error.diagnostics.map { Diagnostic($0.severity, $0.code, at: $0.location, "\(key): \($0.text)") })
        }
    }

    /// Runs a decoding step of a key and records its errors.
    mutating func recorded<Value>(_ key: String, _ decode: () throws(ConfigurationError) -> Value) -> Value? {
        do { return try labeled(key, decode) } catch {
            diagnostics.add(error)
            invalidKeys.insert(key)
            return nil
        }
    }
}
