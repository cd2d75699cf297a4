package import MartletCore
internal import MartletCrypto
package import MartletIO
internal import MartletResponder

/// Who may do what on the admin listener.
///
/// Reading is free on this machine: over loopback or a Unix socket, by the connection's own address. Reading from
/// elsewhere, and every change, requires the token in `Authorization`, or a client certificate; a change comes without
/// one over a Unix socket that only its owner and group may open, which proves who asks. A wrong token is rejected
/// whatever is asked for. No cookie counts, and no page of another site (CSRF, DNS rebinding: see ``AdminHosts``).
package struct AdminAccess: Sendable {
    enum Need { case probe, reading, metrics, change }

    private static let formTypes = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]

    private let token: Secret?
    private let acceptsCertificates: Bool
    private let areMetricsOpen: Bool
    private let isPrivate: @Sendable (SocketEndpoint) -> Bool

    /// - Parameters:
    ///   - token: `nil` if the configuration has none.
    ///   - acceptsCertificates: whether the listener verifies client certificates.
    ///   - areMetricsOpen: whether other machines may read the metrics without the token.
    ///   - isPrivate: whether only the owner and the group of a Unix socket may open it.
    package init(
        token: Secret?, acceptsCertificates: Bool = false, areMetricsOpen: Bool = false,
        isPrivate: @escaping @Sendable (SocketEndpoint) -> Bool = { SocketFile.isPrivate($0) }
    ) {
        (self.token, self.acceptsCertificates, self.areMetricsOpen) = (token, acceptsCertificates, areMetricsOpen)
        self.isPrivate = isPrivate
    }

    var isConfigured: Bool { token != nil || acceptsCertificates }

    /// The rejection of a request; `nil` if it is allowed.
    func rejection(of request: LocalRequest, for need: Need) -> AdminProblem? {
        if need == .probe { return nil }
        if Self.presentsToken(request), !hasToken(request) { return .credentialInvalid }
        if need == .metrics, areMetricsOpen { return nil }
        if Self.isFromAnotherSite(request) { return .crossSite }
        if need != .change, request.local.map({ $0.isUnix || $0.isLoopback }) ?? false { return nil }
        if isAuthorized(request) { return nil }
        // Browsers send an origin with everything that changes something, and forms one of three media types.
        if need == .change, !isConfigured, Self.isFromPage(request) { return .crossSite }
        if need == .change, isFromPrivateSocket(request) { return nil }
        guard isConfigured else { return .localOnly }
        return request.field("Authorization") == nil ? .credentialMissing : .credentialInvalid
    }

    /// Whether a request has the token or a certificate.
    func isAuthorized(_ request: LocalRequest) -> Bool { credential(of: request) != .local }

    /// What speaks for the caller of a request; `local` without a valid token and a certificate.
    func credential(of request: LocalRequest) -> AdminCredential {
        if acceptsCertificates, let certificate = request.clientCertificate { return .certificate(certificate) }
        return hasToken(request) ? .token : .local
    }

    private func hasToken(_ request: LocalRequest) -> Bool {
        guard let token, let presented = Self.bearer(request) else { return false }
        return token.withBytes { ConstantTime.areEqual($0, presented) }
    }

    private func isFromPrivateSocket(_ request: LocalRequest) -> Bool {
        guard let local = request.local, local.isUnix else { return false }
        return isPrivate(local)
    }

    /// Whether there is an `Authorization: Bearer`, right or wrong; other schemes are for a proxy before the listener.
    private static func presentsToken(_ request: LocalRequest) -> Bool {
        values(of: "Authorization", request).contains { $0.lowercased().prefix { $0 != " " } == "bearer" }
    }

    /// The credential of a single `Authorization: Bearer`.
    private static func bearer(_ request: LocalRequest) -> [UInt8]? {
        let values = request.fields.filter { $0.name.lowercased() == "authorization" }
        guard values.count == 1, let value = values.first?.value else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return Array(parts[1].utf8)
    }

    /// Whether a page of another site has caused the request; a link that is followed is not one, a frame is.
    private static func isFromAnotherSite(_ request: LocalRequest) -> Bool {
        if values(of: "Sec-Fetch-Site", request).contains(where: { $0 != "same-origin" && $0 != "none" }) {
            let isLink =
                request.method == "GET" && values(of: "Sec-Fetch-Mode", request) == ["navigate"]
                && values(of: "Sec-Fetch-Dest", request).allSatisfy { $0 == "document" }
            guard isLink else { return true }
        }
        let host = request.field("Host")?.lowercased()
        return values(of: "Origin", request).contains { origin in
            guard let host else { return true }
            return origin.lowercased() != "http://\(host)" && origin.lowercased() != "https://\(host)"
        }
    }

    /// Every value of a field: a page must not be taken for another one by repeating it.
    private static func values(of name: String, _ request: LocalRequest) -> [String] {
        request.fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    private static func isFromPage(_ request: LocalRequest) -> Bool {
        if ["Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"].contains(where: { request.field($0) != nil }) { return true }
        let type = request.field("Content-Type")?.lowercased().prefix { $0 != ";" }
        return type.map { formTypes.contains($0.filter { $0 != " " }) } ?? false
    }
}

/// What speaks for the caller of a request to the admin listener.
enum AdminCredential: Equatable {
    case token
    /// A verified certificate in DER.
    case certificate([UInt8])
    /// None: the change came over a Unix socket that only its owner and group may open.
    case local
}

extension AdminProblem {
    /// A page of another site has caused the request.
    static let crossSite = AdminProblem(status: 403, code: "cross_site")
    /// No credential is configured: other machines may not read, and changes come over a private Unix socket alone.
    static let localOnly = AdminProblem(status: 403, code: "local_only")
    static let credentialMissing = AdminProblem(status: 401, code: "credential_missing")
    static let credentialInvalid = AdminProblem(status: 401, code: "credential_invalid")
}
