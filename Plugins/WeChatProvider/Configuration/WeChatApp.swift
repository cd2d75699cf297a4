public import MartletConfig
public import MartletCore

/// One application that is registered at WeChat: an entry of `apps`.
///
/// At WeChat every variant is a separate application with its own id and secret, and a code is valid only for the
/// application that it was issued to.
public struct WeChatApp: ConfigurationDecodable {
    /// Where the application's users sign in.
    public enum Variant: String, Sendable, CaseIterable, ConfigurationValue {
        /// A mobile app that uses WeChat's SDK.
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
    /// Whether logins of a mini-program may have the code of a phone number.
    public let phone: Located<Bool>

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        phone = reader.optional("phone", default: Located(false, at: reader.location))
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

    /// Reads a required key; an error is recorded, so that the other keys are read too.
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
            .optional(
                "phone", .boolean, default: "false",
                "Whether a login of a mini-program may have a `phone_code`, which is exchanged for the phone number."),
        ])
        .withSecret("app_secret", required: true, "The application's secret at WeChat.")
    }

    /// Checks the values of the fields.
    func validate(into diagnostics: inout Diagnostics) {
        let digits = id.value.dropFirst(2)
        if !id.value.hasPrefix("wx") || digits.count != 16 || !digits.allSatisfy({ $0.isASCII && $0.isHexDigit }) {
            diagnostics.error(.configBadValue, at: id.location, "app_id: must be wx and 16 hexadecimal digits")
        }
        if phone.value, variant.value != .miniProgram {
            diagnostics.error(
                .configBadValue, at: phone.location, "phone: only mini-programs have codes of phone numbers")
        }
        let isPrintable = secret.value.withBytes { $0.allSatisfy { (0x21...0x7E).contains($0) } }
        if !isPrintable {
            diagnostics.error(
                .configBadValue, at: secret.location,
                "app_secret: contains a space, a line break or a non-printable character")
        }
    }
}
