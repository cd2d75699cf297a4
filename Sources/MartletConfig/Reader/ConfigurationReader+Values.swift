extension ConfigurationReader {
    /// The value of a key that must be there.
    /// - Throws: `config.missing_key`, or what is wrong with the value.
    public mutating func required<Value: ConfigurationValue>(
        _ key: String, as type: Value.Type = Value.self
    ) throws(ConfigurationError) -> Value {
        let node = try requiredNode(key)
        return try labelled(key) { () throws(ConfigurationError) in try Value(decoding: node) }
    }

    /// The value of a key that must be there and lie within bounds.
    /// - Throws: `config.missing_key`, or what is wrong with the value.
    public mutating func required<Value: ConfigurationQuantity>(
        _ key: String, as type: Value.Type = Value.self, in range: ClosedRange<Value>
    ) throws(ConfigurationError) -> Value {
        let node = try requiredNode(key)
        return try labelled(key) { () throws(ConfigurationError) in try Value(decoding: node, in: range) }
    }

    /// The value of a key, `nil` if it is absent; a wrong value is recorded and counts as absent.
    public mutating func optional<Value: ConfigurationValue>(_ key: String, as type: Value.Type = Value.self) -> Value?
    {
        guard let node = node(key) else { return nil }
        return recorded(key) { () throws(ConfigurationError) in try Value(decoding: node) }
    }

    /// The value of a key within bounds, `nil` if it is absent; a wrong value is recorded and counts as absent.
    public mutating func optional<Value: ConfigurationQuantity>(
        _ key: String, as type: Value.Type = Value.self, in range: ClosedRange<Value>
    ) -> Value? {
        guard let node = node(key) else { return nil }
        return recorded(key) { () throws(ConfigurationError) in try Value(decoding: node, in: range) }
    }

    /// The value of a key, or its default; a wrong value is recorded.
    public mutating func optional<Value: ConfigurationValue>(_ key: String, default value: Value) -> Value {
        optional(key, as: Value.self) ?? value
    }

    /// The value of a key within bounds, or its default; a wrong value is recorded.
    public mutating func optional<Value: ConfigurationQuantity>(
        _ key: String, default value: Value, in range: ClosedRange<Value>
    ) -> Value {
        optional(key, as: Value.self, in: range) ?? value
    }

    /// The node of a key that must be there.
    mutating func requiredNode(_ key: String) throws(ConfigurationError) -> ConfigurationNode {
        if let node = node(key) { return node }
        // A misspelt key is the mistake to show, not the key that is missing because of it.
        for entry in entries.prefix(Suggestion.mostCandidates) where !isKnown(entry.key.value) {
            guard Suggestion.nearest(to: entry.key.value, among: [key]) != nil else { continue }
            reportedKeys.insert(entry.key.value)
            throw ConfigurationError(
                .configUnknownKey, at: entry.key.location,
                "unknown key \(quoted(entry.key.value)) in \(title) (did you mean '\(key)'?)")
        }
        throw ConfigurationError(.configMissingKey, at: location, "missing key '\(key)' in \(title)")
    }

    /// Runs a decoding step of a key; what it finds is told with the key's name in front.
    func labelled<Value>(
        _ key: String, _ decode: () throws(ConfigurationError) -> Value
    ) throws(ConfigurationError) -> Value {
        do { return try decode() } catch {
            throw ConfigurationError(
                error.diagnostics.map { Diagnostic($0.severity, $0.code, at: $0.location, "\(key): \($0.text)") })
        }
    }

    /// Runs a decoding step of a key; what it finds is recorded.
    mutating func recorded<Value>(_ key: String, _ decode: () throws(ConfigurationError) -> Value) -> Value? {
        do { return try labelled(key, decode) } catch {
            diagnostics.add(error)
            return nil
        }
    }
}
