public import MartletCore
private import MartletCrypto

/// The fields of a callback, as the browser sent them: nothing in them is verified.
///
/// Every field occurs at most once and is a string; those that a provider does not ask for are ignored.
public struct CallbackFields: Sendable {
    /// The longest query or form.
    public static let maximumBytes = 64 * 1024
    /// The most fields, whatever their names.
    public static let maximumFields = 32

    private let values: [String: Secret]
    /// How the fields were sent.
    public let responseMode: RedirectFlow.ResponseMode
    /// Equal for equal bytes alone.
    package let digest: [UInt8]

    /// Parses a query or the body of a form, without a `?`.
    /// - Throws: `malformed` with `redirect.bad_callback` or `redirect.repeated_field`.
    public init(encoded: [UInt8], sentBy responseMode: RedirectFlow.ResponseMode) throws(AuthenticationError) {
        guard encoded.count <= Self.maximumBytes else { throw .malformed(.redirectBadCallback) }
        var decoder = FormDecoder(encoded)
        let pairs: [(name: [UInt8], value: Secret)]
        do throws(FormDecoder.FormError) { pairs = try decoder.pairs(upTo: Self.maximumFields) } catch {
            throw .malformed(.redirectBadCallback)
        }
        var names: Set<[UInt8]> = []
        var values: [String: Secret] = [:]
        for (name, value) in pairs {
            guard names.insert(name).inserted else { throw .malformed(.redirectRepeatedField) }
            // A dictionary takes some other strings for equal although their bytes differ.
            guard name.allSatisfy({ $0 < 0x80 }) else { continue }
            values[String(decoding: name, as: UTF8.self)] = value
        }
        self.values = values
        self.responseMode = responseMode
        digest = SHA256.digest(encoded)
    }

    /// The `state`, by which the core finds the attempt; `nil` if it is absent, empty or too long for one.
    public var state: String? {
        guard let state = values["state"], (1...RedirectAttempt.stateLengths.upperBound).contains(state.count) else {
            return nil
        }
        return state.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// A secret, such as a code or a token; `nil` if it is absent or empty.
    /// - Parameter maximumBytes: the longest value that the other site sends.
    /// - Throws: `malformed` with `redirect.field_too_long`.
    public func secret(_ name: String, maximumBytes: Int) throws(AuthenticationError) -> Secret? {
        guard let value = values[name], value.count > 0 else { return nil }
        guard value.count <= maximumBytes else { throw .malformed(.redirectFieldTooLong) }
        return value
    }

    /// A string that is not a secret; `nil` if it is absent or empty.
    /// - Parameter maximumBytes: the longest value that the other site sends, in UTF-8.
    /// - Throws: `malformed` with `redirect.field_too_long`.
    public func text(_ name: String, maximumBytes: Int) throws(AuthenticationError) -> String? {
        try secret(name, maximumBytes: maximumBytes)?.withBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// A secret that must be present.
    /// - Throws: `malformed` with `redirect.missing_field` or `redirect.field_too_long`.
    public func requiredSecret(_ name: String, maximumBytes: Int) throws(AuthenticationError) -> Secret {
        guard let value = try secret(name, maximumBytes: maximumBytes) else {
            throw .malformed(.redirectMissingField)
        }
        return value
    }
}
