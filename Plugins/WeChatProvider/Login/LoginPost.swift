internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// What somebody who signs in has sent.
///
/// Everything else is ignored, an `openid`, a `unionid` and an `access_token` above all: who knows them proves nothing.
struct LoginPost: Sendable {
    private static let maximumCodeBytes = 128

    let app: WeChatConfiguration.NamedApp
    let code: Secret
    /// What a mini-program sends along; `nil` for all others.
    let data: MiniProgramData?
    /// The provider's name: of two with the same application only one may send a code.
    private let provider: String
    /// Who may post the same again and get the same answer; `nil` for nobody.
    private let scope: [UInt8]?

    /// - Throws: `malformed` for a missing member or an unknown app, `rejected` with `wechat.bad_code`.
    init(
        _ form: SignInForm, in login: AuthenticationContext, of provider: String, configuration: WeChatConfiguration
    ) throws(AuthenticationError) {
        self.provider = provider
        scope = login.repetitionScope
        app = try Self.app(of: form, in: configuration.apps)
        code = try form.requiredSecret("code")
        guard code.withBytes({ isToken($0, most: Self.maximumCodeBytes) }) else { throw .badCode }
        data =
            app.variant == .miniProgram
            ? try MiniProgramData(form, decrypts: configuration.decrypts) : nil
    }

    /// Which entry a client means: it may be left unsaid where there is one.
    private static func app(
        of form: SignInForm, in apps: [WeChatConfiguration.NamedApp]
    ) throws(AuthenticationError) -> WeChatConfiguration.NamedApp {
        let name = try form.text("app")
        let found =
            name.map { name in apps.first { $0.clientName.hasSameBytes(as: name) } }
            ?? (apps.count == 1 ? apps.first : nil)
        guard let found else { throw name == nil ? form.missing("app") : .unknownApp }
        return found
    }

    /// By what the store knows the code: nobody who reads it learns the code.
    var digest: String {
        code.withBytes { Base64URL.encode(SHA256.digest(Array(app.id.lowercased().utf8) + [0] + $0)) }
    }

    /// Whether who posts the same again gets the same answer.
    var isRepeatable: Bool { scope != nil }

    /// The login's answer is repeated to who posts the same again.
    var repetition: SignIn.Repetition? {
        guard isRepeatable else { return nil }
        return SignIn.Repetition(
            name: Base64URL.encode(SHA256.digest(tag)),
            key: HKDFSHA256.derive(
                from: code, salt: [], purpose: Array("martlet wechat answer".utf8), length: AES256GCM.keyLength))
    }

    /// Equal for two posts that say the same, to the same endpoint and from the same place, and for no others.
    var tag: [UInt8] {
        let place = SHA256.digest(Array(provider.utf8)) + (scope.map { [1] + SHA256.digest($0) } ?? [0])
        return HMACSHA256.authenticate(Array(app.id.utf8) + [0] + place + (data?.fingerprint ?? []), key: code)
    }
}
