internal import MartletConfig
internal import MartletCore
package import MartletProvider
package import MartletRouter

/// What one configuration says about who may pass, compiled and immutable: the authenticator's part of it.
package final class AuthenticationRules: Sendable {
    /// What a route accepts, as plain values.
    package struct Route: Sendable {
        package let mode: MartletRouter.Route.Mode
        /// Whether it has headers that do not depend on the caller.
        let hasConstants: Bool
        let acceptsSessions: Bool
        let acceptsDirect: Bool
        /// Whether one of its providers verifies names and passwords.
        package let acceptsBasic: Bool
        /// Index of the providers that verify its credentials, in ``AuthenticationRules/plans``.
        let plan: Int32
        /// Whether more than `Authorization` decides: a header of its own, or a part of the request.
        package let readsRequest: Bool
        /// Whether decisions depend on parts of the request.
        let dependsOnRequest: Bool
        /// Whether a client certificate is a credential.
        package let acceptsCertificates: Bool
        /// The headers that are credentials.
        let headers: HeaderIndex.Part
        /// How long after its credential an exchange ends, in nanoseconds; −1 for never.
        package let expiryGrace: Int64

        fileprivate init(
            _ route: MartletRouter.Route, of table: RouteTable, plan index: Int32, _ plan: AuthenticationPlan,
            _ headers: HeaderIndex.Part, _ providers: [ProviderHandle], hasSessions: Bool
        ) {
            mode = route.mode
            let hasUpstream = route.upstream >= 0 || route.servesChecksOnly
            hasConstants = hasUpstream && table.injections[route.injection].hasConstants
            acceptsSessions = hasSessions && route.credentials.contains(.session)
            acceptsDirect = route.credentials.contains(.direct)
            acceptsBasic = acceptsDirect && route.providers.contains { providers[$0].accepts.contains(.basic) }
            self.plan = index
            readsRequest = mode != .none && acceptsDirect && plan.readsRequest
            dependsOnRequest = !plan.reuseKey.isEmpty
            acceptsCertificates = readsRequest && plan.acceptsCertificates
            self.headers = readsRequest ? headers : HeaderIndex.Part()
            expiryGrace =
                if case .after(let grace) = route.upgrade.closeOnExpiry { grace.boundedNanoseconds } else { -1 }
        }
    }

    /// The settings of each route for the request path, without references.
    package let routes: [Route]
    package let providers: [ProviderHandle]
    /// Finds the account of a provider's identity; `nil` without accounts.
    package let subjects: (any SubjectResolving)?
    /// The policies and the header templates of the routes.
    let table: RouteTable
    /// The sets of providers that verify credentials; equal sets share an index.
    let plans: [AuthenticationPlan]
    /// For each plan, whether several routes use it.
    let isShared: [Bool]
    /// The headers that are credentials on some route.
    package let headerSources: [HeaderSource]
    /// The same, for the search in heads.
    let headerIndex: HeaderIndex
    /// Those of keys, on every route.
    let keyHeaders: HeaderIndex.Part
    /// Whether any route has such headers, or providers that decide by parts of a request; or rejects keys of others.
    package let readsRequests: Bool
    /// The names of the upstreams.
    let upstreams: [String]
    /// Verifies session tokens; `nil` rejects them.
    let sessions: (any SessionVerifying)?
    /// Signs the assertion for upstreams; `nil` without `assertion:`.
    let assertion: AssertionSigner?
    /// How the access log names callers.
    package let names: CallerNames
    /// Verifies proofs of credentials that are bound to keys; `nil` rejects them.
    package let proofs: (any ProofVerifying)?
    /// The maximum length of a token.
    let maximumTokenBytes: Int

    package init(
        _ table: RouteTable, providers: [ProviderHandle], upstreams: [String], sessions: (any SessionVerifying)?,
        subjects: (any SubjectResolving)?, assertion: AssertionSigner?, names: CallerNames = CallerNames(),
        proofs: (any ProofVerifying)? = nil, maximumTokenBytes: Int = 16 * 1024
    ) {
        self.maximumTokenBytes = maximumTokenBytes
        self.proofs = proofs
        self.table = table
        self.providers = providers
        self.upstreams = upstreams
        self.sessions = sessions
        self.subjects = subjects
        self.assertion = assertion
        self.names = names
        let headerSources = HeaderSource.all(of: providers)
        self.headerSources = headerSources
        var plans: [AuthenticationPlan] = []
        var planOfRoute: [Int32] = []
        for route in table.routes {
            let plan = AuthenticationPlan(
                route.providers.map { Int32($0) }, of: providers, headerSources: headerSources)
            if let known = plans.firstIndex(of: plan) {
                planOfRoute.append(Int32(known))
            } else {
                planOfRoute.append(Int32(plans.count))
                plans.append(plan)
            }
        }
        var index = HeaderIndex()
        let parts = plans.map { index.add($0.headerSources, of: headerSources) }
        let keys = headerSources.indices.filter { !headerSources[$0].isSignature }.compactMap { UInt8(exactly: $0) }
        keyHeaders = index.add(keys, of: headerSources)
        headerIndex = index
        routes = zip(table.routes, planOfRoute).map { route, plan in
            Route(
                route, of: table, plan: plan, plans[Int(plan)], parts[Int(plan)], providers,
                hasSessions: sessions != nil)
        }
        readsRequests = routes.contains { $0.readsRequest || $0.mode == .optional && !keys.isEmpty }
        self.plans = plans
        isShared = plans.indices.map { plan in planOfRoute.count { $0 == plan } > 1 }
    }
}
