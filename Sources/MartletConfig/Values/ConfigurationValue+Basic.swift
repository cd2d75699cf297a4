public import MartletCore

extension ConfigurationNode {
    /// The text of a single value.
    /// - Throws: `config.wrong_type` for a list, a block or no value; `config.bad_value` for control characters.
    public func text() throws(ConfigurationError) -> String {
        let scalar = try scalar(expecting: "a string")
        guard !scalar.text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw error(.configBadValue, "has a line break or another control character")
        }
        return scalar.text
    }

    /// The scalar of a single value of any type.
    func scalar(expecting what: String) throws(ConfigurationError) -> Scalar {
        guard case .scalar(let scalar) = content, !isNull else {
            throw mismatch(mustBe: what)
        }
        return scalar
    }

    /// The text of a value that must not be quoted.
    func plainText(expecting what: String) throws(ConfigurationError) -> String {
        let scalar = try scalar(expecting: what)
        guard scalar.isPlain || scalar.hadVariable else {
            throw error(.configWrongType, "must be \(what), not a quoted string: leave the quotes out")
        }
        return scalar.text
    }

    /// An error at this position.
    public func error(_ code: ErrorCode, _ text: String) -> ConfigurationError {
        ConfigurationError(code, at: location, text)
    }
}

extension String: ConfigurationValue {
    /// Any single value, as written.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) { self = try node.text() }
}

extension Bool: ConfigurationValue {
    /// `true` or `false`, without quotes.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        switch try node.plainText(expecting: "true or false") {
        case "true": self = true
        case "false": self = false
        case let other: throw node.error(.configWrongType, "must be true or false, not \(quoted(other))")
        }
    }
}

extension Int: ConfigurationQuantity {
    /// A whole number in decimal digits, without quotes.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.plainText(expecting: "a whole number")
        guard text.first != "+", let value = Int(text) else {
            throw node.error(.configWrongType, "must be a whole number, not \(quoted(text))")
        }
        self = value
    }

    public static var rangeCode: ErrorCode { .configBadValue }
    public var configurationText: String { String(self) }
}

extension ConfigurationValue where Self: RawRepresentable & CaseIterable, RawValue == String {
    /// One of the type's raw values.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard let value = Self(rawValue: text) else {
            throw node.error(.configBadValue, notOneOf(Self.allCases.map(\.rawValue), text))
        }
        self = value
    }
}

extension Located: ConfigurationValue where Value: ConfigurationValue {
    /// The value with its position.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        self.init(try Value(decoding: node), at: node.location)
    }
}

/// The message for a name that is not on the list: `must be off or on, not 'onn' (did you mean 'on'?)`.
func notOneOf(_ names: [String], _ text: String) -> String {
    "must be \(alternatives(names)), not \(quoted(text))\(Suggestion.phrase(for: text, among: names))"
}
