import WorldMachine

/// What a seed decides about callers who prove who they are by others than the gateway: it draws from a generator of its
/// own, so that a plan without them stays as it was.
struct Callers {
    var hasApple: Bool
    var requiresNonce: Bool
    /// How often keys are fetched, in seconds.
    var keysLife: Int

    init(seed: UInt64) {
        var random = SeededRandom(seed: seed, part: "callers")
        hasApple = random.chance(500)
        requiresNonce = random.chance(300)
        keysLife = random.pick([5, 20, 3600])
    }

    /// The names of the providers whose sessions routes accept.
    var providers: String { (["password"] + (hasApple ? ["apple"] : [])).joined(separator: ", ") }

    /// Blocks of `providers`.
    var providerBlocks: String {
        guard hasApple else { return "" }
        return """
              apple:
                kind: apple
                audiences: [\(Issuer.audience)]
                base_url: "http://127.0.0.1:9101"
                nonce: \(requiresNonce ? "required" : "optional")

            """
    }

    /// Other blocks of the configuration.
    var blocks: String {
        guard hasApple else { return "" }
        return """
            jwks: {ttl: \(keysLife)s, unknown_kid_cooldown: 1s, negative_ttl: 1s}

            """
    }

    var routes: String {
        guard hasApple else { return "" }
        return """
            - name: id
              match: {path: "/id/**"}
              auth: {providers: [apple]}
              headers: {set: {X-User-Id: {attribute: subject}}}
              upstream: app

            """
    }

    func faults(seed: UInt64, calm: Int64) -> [PlannedFault] {
        var random = SeededRandom(seed: seed, part: "callers' faults")
        var faults: [PlannedFault] = []
        func add(_ kind: PlannedFault.Kind) {
            let at = 2_000_000_000 + Int64(random.below(Int((calm - 8_000_000_000) / 1_000_000))) * 1_000_000
            faults.append(PlannedFault(kind, at: at, duration: Int64(random.within(50...6000)) * 1_000_000))
        }
        if hasApple {
            for _ in 0..<random.below(5) {
                add(.issuerFails(random.pick([.dies, .hangs, .fails, .babbles, .crawls, .forgets])))
            }
            for _ in 0..<random.below(3) { add(.keysRotate) }
        }
        return faults
    }
}
