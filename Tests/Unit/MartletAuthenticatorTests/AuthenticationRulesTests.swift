import MartletConfig
import MartletCore
import MartletProvider
import MartletRouter
import Testing

@testable import MartletAuthenticator

@Suite struct AuthenticationRulesTests {
    private static let first = Samples.handle("first", .bearerPrefix("f-"))
    private static let second = Samples.handle("second", .bearerPrefix("s-"))
    private static let passwords = Samples.handle("passwords", .basic)

    // MARK: Plans

    @Test func `routes with the same providers in the same order share a plan`() {
        let rules = Samples.rules(
            [
                Samples.route("none", .none), Samples.route("first", .required(providers: ["first"])),
                Samples.route("both", .required(providers: ["first", "second"])),
                Samples.route("reversed", .required(providers: ["second", "first"])),
                Samples.route("optional", .optional(providers: ["first"])),
            ], providers: [Self.first, Self.second])
        #expect(rules.plans.map(\.providers) == [[], [0], [0, 1], [1, 0]])
        #expect(rules.routes.map(\.plan) == [0, 1, 2, 3, 1])
        #expect(rules.isShared == [false, true, false, false])
    }

    @Test func `a route that names no providers shares the plan of one that names all`() {
        let rules = Samples.rules(
            [
                Samples.route("any", .required(providers: [])),
                Samples.route("both", .required(providers: ["first", "second"])),
            ], providers: [Self.first, Self.second])
        #expect(rules.plans.map(\.providers) == [[0, 1]])
        #expect(rules.routes.map(\.plan) == [0, 0] && rules.isShared == [true])
    }

    @Test func `without routes there are no plans`() {
        let rules = Samples.rules([], providers: [Self.first])
        #expect(rules.routes.isEmpty && rules.plans.isEmpty && rules.isShared.isEmpty)
    }

    @Test func `a mount accepts no credential, and has a plan without providers`() {
        let rules = Samples.rules(
            [Samples.route("first", .required(providers: ["first"]))], providers: [Self.first],
            mounts: [Samples.mount("/auth/**")])
        let mount = rules.routes[0]
        #expect(rules.routes.count == 2 && rules.routes.map(\.plan) == [0, 1])
        #expect(rules.plans.map(\.providers) == [[], [0]] && rules.isShared == [false, false])
        #expect(mount.mode == .none && mount.expiryGrace == 0)
        #expect(!mount.acceptsSessions && !mount.acceptsDirect && !mount.acceptsBasic)
    }

    // MARK: Routes

    private static let modes: [(RouteConfiguration.Authentication, MartletRouter.Route.Mode)] = [
        (.none, .none), (.required(providers: ["first"]), .required), (.optional(providers: ["first"]), .optional),
    ]

    @Test(arguments: modes)
    func `a route has the mode of its configuration`(
        authentication: RouteConfiguration.Authentication, mode: MartletRouter.Route.Mode
    ) {
        let rules = Samples.rules([Samples.route("only", authentication)], providers: [Self.first])
        #expect(rules.routes.map(\.mode) == [mode])
    }

    /// The kinds of credentials, whether a provider accepts names and passwords, and what the route accepts: sessions,
    /// direct credentials, names and passwords.
    private static let kinds: [(CredentialKinds, Bool, [Bool])] = [
        ([], true, [false, false, false]), ([.session], true, [true, false, false]),
        ([.direct], true, [false, true, true]), ([.session, .direct], true, [true, true, true]),
        ([.direct], false, [false, true, false]), ([.session, .direct], false, [true, true, false]),
    ]

    @Test(arguments: kinds)
    func `names and passwords are direct credentials of a provider that accepts them`(
        kinds: CredentialKinds, hasPasswords: Bool, expected: [Bool]
    ) {
        var route = Samples.route("only", .required(providers: hasPasswords ? ["first", "passwords"] : ["first"]))
        route.credentials = kinds
        let rules = Samples.rules([route], providers: [Self.first, Self.passwords])
        let compiled = rules.routes[0]
        #expect([compiled.acceptsSessions, compiled.acceptsDirect, compiled.acceptsBasic] == expected)
    }

    private static let graces: [(UpgradeConfiguration.CloseOnExpiry, Int64)] = [
        (.never, -1), (.after(.zero), 0), (.after(.nanoseconds(1)), 1), (.after(.seconds(2)), 2_000_000_000),
        (.after(.seconds(-2)), 0),
        // A hundred years: safe to add to the clock.
        (.after(.seconds(3_155_760_001)), 3_155_760_000_000_000_000),
        (.after(.seconds(Int64.max)), 3_155_760_000_000_000_000),
    ]

    @Test(arguments: graces)
    func `the grace period is bounded, and negative where an exchange may outlive its credential`(
        closing: UpgradeConfiguration.CloseOnExpiry, expected: Int64
    ) {
        var route = Samples.route("only", .required(providers: ["first"]))
        route.upgrade.closeOnExpiry = closing
        let rules = Samples.rules([route], providers: [Self.first])
        #expect(rules.routes[0].expiryGrace == expected)
    }

    @Test func `the rules have what they were made of`() {
        let rules = Samples.rules(
            [Samples.route("only", .none, upstream: "files")], providers: [Self.second, Self.first],
            upstreams: ["api", "files"])
        #expect(rules.upstreams == ["api", "files"] && rules.providers.map(\.name) == ["second", "first"])
        #expect(rules.table.routes.map(\.upstream) == [1] && rules.table.routes.map(\.name) == ["only"])
        #expect(rules.sessions != nil && rules.subjects == nil && rules.assertion == nil)
    }
}
