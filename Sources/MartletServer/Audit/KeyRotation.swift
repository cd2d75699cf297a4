internal import MartletAdmin
internal import MartletAudit
internal import MartletCore
internal import MartletIdentities
internal import MartletJOSE
internal import MartletJSON
internal import MartletRouter
internal import MartletTLS

/// The keys and certificates of a configuration, as the audit log names them.
struct KeyInventory: Equatable {
    /// What each kind has, by names that are no secrets.
    let names: [String: Set<String>]

    init(names: [String: Set<String>]) { self.names = names }

    init(_ blueprint: Blueprint) {
        var names: [String: Set<String>] = [:]
        names["certificate"] = Set(
            blueprint.tls.certificates.map {
                "\($0.side) \($0.name) \($0.file) valid from \($0.facts.notBefore) to \($0.facts.notAfter)"
            })
        names["assertion"] = Set(
            (blueprint.assertion?.keySet["keys"]?.array ?? []).compactMap { $0.object?["kid"]?.string })
        names["accounts"] = Set(blueprint.grantKeys?.ids ?? [])
        names["audit"] = Set([blueprint.audit?.key.name].compactMap(\.self))
        self.names = names
    }

    /// What the audit log says about a change to other keys; nothing if none has changed.
    func events(changingTo next: KeyInventory, _ trigger: ReloadTrigger) -> [AuditEvent] {
        Set(names.keys).union(next.names.keys).sorted().compactMap { kind in
            let (before, after) = (names[kind] ?? [], next.names[kind] ?? [])
            guard before != after else { return nil }
            var event = AuditEvent(.keyRotation)
            event.set(trigger)
            event.set("key_kind", kind)
            event.set("added", after.subtracting(before).sorted())
            event.set("removed", before.subtracting(after).sorted())
            return event
        }
    }
}

extension AuditEvent {
    /// What the audit log says about an issuer that has changed its keys.
    init(_ rotation: IssuerKeyRotation, of provider: String, from url: String) {
        self.init(.keyRotation)
        set("key_kind", "issuer")
        set("provider", provider)
        set("url", url)
        set("added", rotation.added.map(\.text))
        set("removed", rotation.removed.map(\.text))
    }
}
