public import MartletConfig
public import MartletCore

/// One application as WeChat knows it: an entry of `apps`.
///
/// Every variant is an application of its own at WeChat, with its own id and secret, and a code is only good with the one
/// that it was made for.
public struct WeChatApp: ConfigurationDecodable {
    /// Where its users sign in.
    public enum Variant: String, Sendable, CaseIterable, ConfigurationValue {
        /// An app on a phone, by WeChat's SDK.
        case mobile
        /// A web page outside WeChat, by QR code or quick login.
        case website
        /// A web page inside WeChat, of a service account.
        case officialAccount = "official_account"
        /// A mini-program or mini-game.
        case miniProgram = "mini_program"
    }

    public let variant: Located<Variant>
    /// `wx` and 16 hexadecimal digits.
    public let id: Located<String>
    public let secret: Located<Secret>

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let id: Located<String>? = Self.recorded(&reader) { (reader) throws(ConfigurationError) in
            try reader.required("app_id")
        }
        let variant: Located<Variant>? = Self.recorded(&reader) { (reader) throws(ConfigurationError) in
            try reader.required("variant")
        }
        let secret = Self.recorded(&reader) { (reader) throws(ConfigurationError) in try reader.secret("app_secret") }
        guard let id, let variant, let secret else { throw .alreadyReported }
        (self.id, self.variant, self.secret) = (id, variant, secret)
    }

    /// Reads a key that must be there; what is wrong is recorded, so that the others are read too.
    private static func recorded<Value>(
        _ reader: inout ConfigurationReader, _ read: (inout ConfigurationReader) throws(ConfigurationError) -> Value
    ) -> Value? {
        do { return try read(&reader) } catch {
            reader.diagnostics.add(error)
            return nil
        }
    }

    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("variant", .choice(Variant.allCases.map(\.rawValue)), "Where its users sign in."),
            .required("app_id", .pattern("^wx[0-9A-Fa-f]{16}$"), "The application's id at WeChat."),
        ])
        .withSecret("app_secret", required: true, "The application's secret at WeChat.")
    }

    /// What no single field can show.
    func validate(into diagnostics: inout Diagnostics) {
        let digits = id.value.utf8.dropFirst(2)
        if !id.value.hasPrefix("wx") || digits.count != 16 || !digits.allSatisfy(Self.isHexadecimal) {
            diagnostics.error(.configBadValue, at: id.location, "app_id: must be wx and 16 hexadecimal digits")
        }
        let isPrintable = secret.value.withBytes { $0.allSatisfy { (0x21...0x7E).contains($0) } }
        if !isPrintable {
            diagnostics.error(
                .configBadValue, at: secret.location, "app_secret: has a space, a line break or other unusual bytes")
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
