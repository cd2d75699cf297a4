internal import MartletConfig
internal import MartletCore

/// `nonce_form`: one for all audiences, or a map by audience.
struct NonceForms: Sendable {
    private static let key = "nonce_form"

    static let shape = ConfigurationGrammar.Shape.either([
        .choice(names), .map(.choice(names)),
    ])
    private static let names = AppleConfiguration.NonceForm.allCases.map(\.rawValue)

    private var common = AppleConfiguration.NonceForm.raw
    private var byAudience: [Located<String>] = []
    private var forms: [String: AppleConfiguration.NonceForm] = [:]

    /// Reads the key; its errors are recorded.
    init(_ reader: inout ConfigurationReader) {
        guard let entries = reader.node(Self.key)?.entries else {
            common = reader.optional(Self.key, default: .raw)
            return
        }
        for entry in entries {
            do throws(ConfigurationError) {
                forms[entry.key.value] = try AppleConfiguration.NonceForm(decoding: entry.value)
                byAudience.append(entry.key)
            } catch {
                reader.diagnostics.add(error)
            }
        }
    }

    subscript(audience: String) -> AppleConfiguration.NonceForm { forms[audience] ?? common }

    /// Each name must be an audience.
    func validate(_ audiences: NonEmpty<Located<String>>, into diagnostics: inout Diagnostics) {
        for name in byAudience where !audiences.contains(where: { $0.value.hasSameBytes(as: name.value) }) {
            diagnostics.error(
                .configBadValue, at: name.location, "\(Self.key): '\(name.value)' is not one of audiences")
        }
    }
}

extension AppleConfiguration {
    /// The form in which an app puts the nonce into its request to Apple.
    func nonceForm(of audience: String) -> NonceForm { nonceForms[audience] }
}
