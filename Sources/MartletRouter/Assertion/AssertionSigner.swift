package import MartletConfig
package import MartletCore
private import MartletCrypto
private import MartletJOSE
package import MartletJSON
package import MartletProvider

/// Writes the signed assertion of the caller's identity: an ES256 JWT (RFC 7519) in a header of its own. Immutable, so
/// that all event loops can use it concurrently.
package final class AssertionSigner: Sendable {
    /// Reserved claim names (RFC 7519 §4.1, and ours); claims of providers with these names are omitted.
    private static let registeredNames: Set<String> = [
        "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "provider", "sid",
    ]

    /// As written in the file.
    package let headerName: String
    /// How long a signed header may be reused. It stays valid for at least as long afterwards, unless the credential
    /// expires.
    package let lifetime: Duration
    /// The document for `/.well-known/jwks.json`: the current, previous and next keys.
    package let keySet: JSONObject
    private let issuer: String
    private let audience: String?
    private let ttl: Int64
    private let key: PrivateKey
    /// The encoded protected header, followed by a dot.
    private let encodedHeader: [UInt8]

    /// Parses the keys.
    /// - Throws: `config.bad_value` at the position of a key that is not a P-256 key.
    package init(_ configuration: AssertionConfiguration) throws(ConfigurationError) {
        headerName = configuration.header.value
        issuer = configuration.issuer
        audience = configuration.audience
        ttl = max(configuration.ttl.wholeSeconds, 1)
        lifetime = .seconds(max(ttl / 2, 1))
        key = try Self.signingKey(configuration.key)
        let own = key.publicKey.parts
        var published = [own]
        for other in configuration.otherKeys {
            let parts = try Self.publicParts(other)
            if !published.contains(parts) { published.append(parts) }
        }
        keySet = ["keys": .array(published.map { .object($0.jwk(named: $0.thumbprint)) })]
        let header: JSONObject = [
            "alg": .string(own.algorithm.rawValue), "typ": "JWT", "kid": .string(own.thumbprint),
        ]
        encodedHeader = Array("\(Base64URL.encode(JSON.write(header))).".utf8)
    }

    /// Appends `Name: value` with CRLF.
    ///
    /// - Parameters:
    ///   - principal: the caller.
    ///   - injection: the route's headers, whose claims are included under their own names.
    ///   - upstream: the audience, unless the configuration sets one.
    ///   - now: the wall-clock time.
    ///   - buffer: receives the line; unchanged if there is none.
    /// - Returns: the reason if the header was omitted; `nil` if it was written.
    package func append(
        for principal: Principal, injection: HeaderInjection, upstream: String, now: UnixTime,
        into buffer: inout ByteBuffer
    ) -> DroppedHeader? {
        let end = min(now.advanced(bySeconds: ttl), principal.identity.expiresAt)
        guard now < end else { return DroppedHeader(name: headerName, reason: .headerExpired) }
        let claims = claims(of: principal, injection, audience: audience ?? upstream, from: now, to: end)
        var token = encodedHeader
        Base64URL.append(JSON.write(claims), to: &token)
        guard token.count <= HeaderInjection.maximumValueBytes - Self.signatureBytes else {
            return DroppedHeader(name: headerName, reason: .headerTooLong)
        }
        do throws(CryptoError) {
            let signature = try key.sign(token)
            token.append(.dot)
            Base64URL.append(signature, to: &token)
        } catch {
            return DroppedHeader(name: headerName, reason: .headerNotSigned)
        }
        buffer.append(text: headerName)
        buffer.append(": ")
        buffer.append(token)
        buffer.append("\r\n")
        return nil
    }

    /// A dot and 64 bytes in base64url.
    private static let signatureBytes = 87

    private func claims(
        of principal: Principal, _ injection: HeaderInjection, audience: String, from now: UnixTime, to end: UnixTime
    ) -> JSONObject {
        var claims: [(String, JSONValue)] = [
            ("iss", .string(issuer)), ("aud", .string(audience)), ("sub", .string(principal.subject)),
            ("provider", .string(principal.provider)), ("iat", .integer(now.seconds)), ("exp", .integer(end.seconds)),
        ]
        if let session = principal.sessionID { claims.append(("sid", .string(session))) }
        for (name, value) in injection.claims(of: principal) where !Self.registeredNames.contains(name) {
            claims.append((name, value))
        }
        return JSONObject(claims)
    }
}

// MARK: - Keys

extension AssertionSigner {
    private static func signingKey(_ pem: Located<Secret>) throws(ConfigurationError) -> PrivateKey {
        let key: PrivateKey
        do { key = try PrivateKey(pem: pem.value) } catch {
            throw ConfigurationError(
                .configBadValue, at: pem.location, "key: must be a P-256 private key as unencrypted PEM")
        }
        try check(key.publicKey.parts, "key", at: pem.location)
        return key
    }

    private static func publicParts(_ pem: Located<Secret>) throws(ConfigurationError) -> PublicKeyParts {
        let parts: PublicKeyParts
        do { parts = try PublicKey(pem: pem.value).parts } catch {
            throw ConfigurationError(
                .configBadValue, at: pem.location, "verify_key_files: must be a P-256 key as unencrypted PEM")
        }
        try check(parts, "verify_key_files", at: pem.location)
        return parts
    }

    private static func check(
        _ parts: PublicKeyParts, _ name: String, at location: SourceLocation
    ) throws(ConfigurationError) {
        guard parts.algorithm == .es256 else {
            throw ConfigurationError(
                .configBadValue, at: location, "\(name): is an RSA key, but assertions are signed with P-256 (ES256)")
        }
    }
}
