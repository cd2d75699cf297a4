internal import MartletConfig
internal import MartletCore
internal import MartletJSON

extension OIDCConfiguration {
    /// Whether something has to be looked up in the issuer's discovery document.
    var needsDiscovery: Bool {
        if case .discovered = keys { return true }
        return web.map { $0.authorizationURL == nil || $0.tokenURL == nil } ?? false
    }

    /// Checks that span several fields or list entries.
    func validate(into diagnostics: inout Diagnostics) {
        validateIssuer(into: &diagnostics)
        for entry in audiences where entry.value.isEmpty {
            diagnostics.error(.configBadValue, at: entry.location, "audiences: an empty string matches nothing")
        }
        if issuers.contains(where: \.isEmpty) {
            diagnostics.error(.configBadValue, at: issuer.location, "issuers: an empty string matches nothing")
        }
        if case .url(let url) = keys { Self.check(url, "jwks_url", into: &diagnostics) }
        if let claim = subjectClaim, !claim.value.isNested, Self.changingClaims.contains(claim.value.name) {
            diagnostics.warning(
                .configInsecure, at: claim.location,
                "subject_claim: '\(claim.value)' may be given to another user later; use a claim that never is")
        }
        validateOpaqueTokens(into: &diagnostics)
        web?.validate(into: &diagnostics)
    }

    private static let changingClaims = ["email", "preferred_username", "upn", "unique_name", "name", "phone_number"]

    private func validateIssuer(into diagnostics: inout Diagnostics) {
        guard needsDiscovery else {
            if issuer.value.isEmpty {
                diagnostics.error(.configBadValue, at: issuer.location, "issuer: an empty string matches nothing")
            }
            return
        }
        guard let url = URLText(issuer.value), !url.target.utf8.contains(UInt8(ascii: "?")) else {
            diagnostics.error(
                .configBadURL, at: issuer.location,
                "issuer: must be a URL without a query, such as https://issuer.example, or 'jwks_url' must be given")
            return
        }
        Self.check(Located(url, at: issuer.location), "issuer", into: &diagnostics)
    }

    private func validateOpaqueTokens(into diagnostics: inout Diagnostics) {
        if let introspection {
            Self.check(introspection.url, "introspection.url", into: &diagnostics)
            if prefixes.isEmpty {
                diagnostics.error(
                    .configMissingKey, at: introspection.url.location,
                    "introspection: needs 'accepts', so that no other token is sent there")
            }
        } else if let first = prefixes.first {
            diagnostics.error(.configMissingKey, at: first.location, "accepts: is unused without 'introspection'")
        }
        for (index, prefix) in prefixes.enumerated() {
            let isTaken = prefixes[..<index].contains { other in
                prefix.value.hasPrefix(other.value) || other.value.hasPrefix(prefix.value)
            }
            if isTaken {
                diagnostics.error(
                    .configBadValue, at: prefix.location, "accepts: '\(prefix.value)' and another prefix overlap")
            }
        }
    }

    /// Records an error for a URL whose responses cannot be trusted.
    static func check(_ url: Located<URLText>, _ key: String, into diagnostics: inout Diagnostics) {
        guard !url.value.isTrustworthy else { return }
        diagnostics.error(
            .configBadURL, at: url.location, "\(key): must be https, unless the host is a loopback address")
    }
}
