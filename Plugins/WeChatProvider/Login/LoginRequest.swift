private import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// The members of a login's body.
///
/// All others are ignored, above all `openid`, `unionid` and `access_token`: knowing them proves nothing.
struct LoginRequest: Sendable {
    static let maximumCodeBytes = 128

    let app: WeChatConfiguration.NamedApp
    let code: Secret
    /// A mini-program's signed or encrypted data; `nil` for other variants.
    let data: MiniProgramData?
    /// The code of a mini-program's phone number; `nil` without one.
    let phoneCode: Secret?
    /// The provider's name: of two providers with the same application only one may send a code.
    private let provider: String
    /// The client's network.
    let owner: WorkOwner
    /// The scope in which an identical request gets the same result; `nil` if none does.
    private let scope: [UInt8]?

    /// - Throws: `malformed` for a missing member or an unknown app, `rejected` with `wechat.bad_code`.
    init(
        _ form: SignInForm, in login: AuthenticationContext, of provider: String, configuration: WeChatConfiguration
    ) throws(AuthenticationError) {
        self.provider = provider
        scope = login.repetitionScope
        owner = login.owner
        app = try Self.app(of: form, in: configuration.apps)
        code = try form.requiredSecret("code")
        guard code.withBytes({ isToken($0, maximum: Self.maximumCodeBytes) }) else { throw .badCode }
        data =
            app.variant == .miniProgram
            ? try MiniProgramData(form, decrypts: configuration.decrypts) : nil
        phoneCode = try Self.phoneCode(of: form, app)
    }

    /// - Throws: `malformed` where it would be ignored, because the app is not configured for it.
    private static func phoneCode(
        of form: SignInForm, _ app: WeChatConfiguration.NamedApp
    ) throws(AuthenticationError) -> Secret? {
        let member = "phone_code"
        guard let code = try form.secret(member), code.count > 0 else { return nil }
        guard app.app.phone.value else {
            throw .malformed(
                .signInBadMember,
                BodyError(member, .invalid, detail: "The app's entry in the configuration has no `phone: true`."))
        }
        guard code.withBytes({ isToken($0, maximum: maximumCodeBytes) }) else {
            throw .malformed(.signInBadMember, BodyError(member, .invalid))
        }
        return code
    }

    /// The code of a page.
    /// - Throws: `rejected` with `wechat.bad_code`.
    init(
        _ app: WeChatConfiguration.NamedApp, _ code: Secret, in login: AuthenticationContext, of provider: String
    ) throws(AuthenticationError) {
        guard code.withBytes({ isToken($0, maximum: Self.maximumCodeBytes) }) else { throw .badCode }
        (self.app, self.code, self.provider) = (app, code, provider)
        scope = login.repetitionScope
        owner = login.owner
        data = nil
        phoneCode = nil
    }

    /// Selects the entry of `apps`; the name may be omitted if there is only one.
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

    /// The code's key in the store; it does not reveal the code.
    var digest: String {
        code.withBytes { Base64URL.encode(SHA256.digest(Array(app.id.lowercased().utf8) + [0] + $0)) }
    }

    /// Whether an identical request gets the same result.
    var isRepeatable: Bool { scope != nil }

    /// How the response is repeated for an identical request.
    var repetition: SignIn.Repetition? {
        guard isRepeatable else { return nil }
        return SignIn.Repetition(
            name: Base64URL.encode(SHA256.digest(tag)),
            key: HKDFSHA256.derive(
                from: code, salt: [], purpose: Array("martlet wechat answer".utf8), length: AES256GCM.keyLength))
    }

    /// Equal only for identical requests to the same endpoint in the same scope.
    var tag: [UInt8] {
        let origin = SHA256.digest(Array(provider.utf8)) + (scope.map { [1] + SHA256.digest($0) } ?? [0])
        var message = Array(app.id.utf8) + [0] + origin
        if let data { message += data.fingerprint }
        if let phoneCode { message += [1] + phoneCode.withBytes { SHA256.digest($0) } }
        return HMACSHA256.authenticate(message, key: code)
    }
}
