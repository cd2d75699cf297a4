internal import MartletConfig
public import MartletCore
private import MartletJSON
public import MartletProvider

extension OIDCProvider: OnlineChecking {
    /// Fetches the discovery document and the keys, and asks about a made-up token: an issuer that accepts the client
    /// says that it is not valid.
    ///
    /// Whether the client of `web` is accepted shows only at a login.
    public func checkOnline(until deadline: MonotonicTime) async -> [CheckOutcome] {
        var results: [CheckOutcome] = []
        if let discovery {
            await discovery.refresh()
            let status = discovery.status
            results.append(
                CheckOutcome(
                    check: "discovery", failure: status.lastError,
                    detail: status.lastError == nil
                        ? DiscoveryDocument.url(of: configuration.issuer.value) : status.lastMessage ?? "no document"))
        }
        await keys.fetch()
        results.append(
            CheckOutcome(
                check: "keys", failure: keyHealth.state == .ready ? nil : "oidc.keys_unavailable",
                detail: keyHealth.detail))
        if let introspector { results.append(await introspector.checkOnline(until: deadline)) }
        return results
    }
}

extension Introspector {
    /// Has a configured prefix, but is no token that anyone issued.
    func checkOnline(until deadline: MonotonicTime) async -> CheckOutcome {
        let name = "introspection"
        do throws(OIDCError) {
            let response = try await ask("\(firstPrefix)martlet-check-online", until: deadline)
            guard response["active"] == false else {
                return CheckOutcome(
                    check: name, failure: "oidc.introspection_bad_response",
                    detail: "a made-up token is said to be valid: url is not that of an issuer")
            }
            return CheckOutcome(check: name, failure: nil, detail: "the issuer accepts client_id and client_secret")
        } catch {
            return CheckOutcome(check: name, failure: error.code, detail: error.message)
        }
    }
}
