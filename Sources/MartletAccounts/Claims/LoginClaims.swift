internal import MartletJSON

/// The claims that a login brings for its account.
struct LoginClaims: Sendable {
    /// What an account needs changed; `nil` for what stays.
    struct Changes: Sendable {
        var stored: JSONObject?
        var layers: ClaimLayers?

        var isEmpty: Bool { stored == nil && layers == nil }

        /// The queries that make the changes.
        func queries(of subject: String) -> [Query] {
            var queries: [Query] = []
            if let stored {
                queries.append(Query(.setStoredClaims, .text(subject), .text(StoredClaims.write(stored))))
            }
            if let layers { queries += AccountStore.store(layers, of: subject) }
            return queries
        }
    }

    /// Stored when first seen.
    let stored: JSONObject
    /// Set by rules of the configuration.
    var rules = JSONObject()

    /// What they change of a known account.
    func changes(of owner: BoundSubject) -> Changes {
        Changes(stored: StoredClaims.merged(owner.storedClaims, stored), layers: layers(over: owner.claims))
    }

    /// The layers of the account with the claims of rules; `nil` if they are the same.
    func layers(over known: ClaimLayers = ClaimLayers()) -> ClaimLayers? {
        guard !rules.isEmpty else { return nil }
        var layers = known
        layers.apply(rules: rules)
        return layers == known ? nil : layers
    }
}
