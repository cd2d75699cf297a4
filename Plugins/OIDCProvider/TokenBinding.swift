internal import MartletConfig
internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// Whether tokens have to be bound to a key of the client (RFC 9449).
enum DPoPMode: String, Sendable, CaseIterable, ConfigurationValue {
    /// A token that is bound to a key is rejected.
    case off
    case optional
    /// A token that is not bound to a key is rejected.
    case required
}

/// What a token is bound to (RFC 7800): one with `cnf` is of no use without the proof, whatever the configuration says.
struct TokenBinding {
    static let error = OIDCError.rejected("bound_token", "the token is bound to a key, and is no bearer token")

    private let dpop: DPoPMode
    private let needsCertificate: Bool
    /// Whether the token is presented by its bearer with each request, where proofs are checked.
    private let isPresented: Bool

    init(_ configuration: OIDCConfiguration, _ kind: OIDCChecklist.Kind) {
        dpop = configuration.dpop
        needsCertificate = configuration.isBound
        isPresented =
            switch kind {
            case .bearer, .response: true
            case .identity: false
            }
    }

    /// - Returns: what the core has to check; `nil` for a bearer token.
    func binding(of payload: JSONObject) throws(OIDCError) -> CredentialBinding? {
        guard let confirmation = payload.present("cnf") else {
            guard !isPresented || (dpop != .required && !needsCertificate) else {
                throw .rejected("unbound_token", "the token is not bound to a key or a certificate")
            }
            return nil
        }
        guard isPresented, let members = confirmation.object else { throw Self.error }
        // A binding that is not understood is not checked.
        for member in members.members where member.name != "jkt" && member.name != "x5t#S256" { throw Self.error }
        let (key, certificate) = (try thumbprint("jkt", members), try thumbprint("x5t#S256", members))
        guard key == nil || dpop != .off else { throw Self.error }
        guard key != nil || dpop != .required, certificate != nil || !needsCertificate else {
            throw .rejected("unbound_token", "the token is not bound as the configuration demands")
        }
        guard let binding = CredentialBinding(keyThumbprint: key, certificateThumbprint: certificate) else {
            throw Self.error
        }
        return binding
    }

    /// A SHA-256 in base64url.
    private func thumbprint(_ name: String, _ members: JSONObject) throws(OIDCError) -> String? {
        guard let value = members.present(name) else { return nil }
        guard let text = value.string, Base64URL.decode(Array(text.utf8))?.count == 32 else { throw Self.error }
        return text
    }
}
