extension GatewayConfiguration {
    /// Records an error for each rate limit of a route or of logins that is not defined or can never decide, and a
    /// warning for each that none of them uses.
    func checkRateLimits(_ reader: inout ConfigurationReader) {
        if store.url.value == "memory:" {
            for limit in server.rateLimits where limit.isShared {
                reader.error(
                    .configMissingKey, at: limit.name.location,
                    "rate limit \(quoted(limit.name.value)) is shared, which needs a store that instances share: store.url"
                )
            }
        }
        let defined = reader.node("rate_limits")?.entries?.map(\.key) ?? []
        let names = defined.map(\.value)
        // The callers of logins are unknown.
        check(
            sessions.loginLimits, of: "sessions.limits.login", among: names,
            withoutCaller: "is decided before the credential is read", &reader)
        var used = Set(sessions.loginLimits.map(\.value))
        for route in routes {
            used.formUnion(route.limits.rates.map(\.value))
            var isPublic = false
            if case .none = route.authentication { isPublic = true }
            check(
                route.limits.rates, of: "route \(quoted(route.name.value))", among: names,
                withoutCaller: isPublic ? "has 'auth: none'" : nil, &reader)
        }
        guard !reader.diagnostics.hasErrors else { return }
        for name in defined where !used.contains(name.value) {
            reader.diagnostics.warning(
                .configUnused, at: name.location, "no route uses rate limit \(quoted(name.value)), and no login")
        }
    }

    /// - Parameter reason: why there is no caller to count by; `nil` if there is one.
    private func check(
        _ limits: [Located<String>], of title: String, among names: [String], withoutCaller reason: String?,
        _ reader: inout ConfigurationReader
    ) {
        var seen: Set<String> = []
        for name in limits {
            let text = quoted(name.value)
            if !names.contains(name.value) {
                reader.error(
                    .configUnknownLimit, at: name.location,
                    "\(title) names rate limit \(text), which is not defined"
                        + Suggestion.phrase(for: name.value, among: names))
            } else if !seen.insert(name.value).inserted {
                reader.error(.configDuplicateName, at: name.location, "\(title) names rate limit \(text) twice")
            } else if let reason, server.rateLimits.contains(where: { $0.name.value == name.value && $0.needsCaller }) {
                reader.error(
                    .configBadValue, at: name.location,
                    "\(title) \(reason), but rate limit \(text) counts by the caller")
            }
        }
    }
}
