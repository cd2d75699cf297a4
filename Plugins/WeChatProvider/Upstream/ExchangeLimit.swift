internal import MartletCore

/// Limits the exchanges in flight per application, so that a flood for one leaves capacity for the others, and one from an
/// address leaves capacity for other addresses.
final class ExchangeLimit: Sendable {
    /// Half of the calls that a provider may have in flight in all.
    static let perApp = SharedBound.weChatExchanges.total
    static let perAddress = SharedBound.weChatExchanges.addressPart(of: perApp)
    private static let perNetwork = SharedBound.weChatExchanges.networkPart(of: perApp)

    /// Exchanges of an application; of a network, or of an address alone, where they are given.
    private struct Share: Hashable {
        let app: String
        var group: UInt64?
        var member: UInt64?
    }

    private let counts: Lock<[Share: Int]> = Lock([:])

    private static func shares(_ app: String, _ owner: WorkOwner) -> [(share: Share, limit: Int)] {
        let all = (share: Share(app: app), limit: perApp)
        guard owner != .anonymous else { return [all] }
        return [
            all, (share: Share(app: app, group: owner.group), limit: perNetwork),
            (share: Share(app: app, group: owner.group, member: owner.member), limit: perAddress),
        ]
    }

    /// Acquires a slot; `false` when all are in use, or all that the client may have.
    func acquire(_ app: String, for owner: WorkOwner) -> Bool {
        let shares = Self.shares(app, owner)
        return counts.withLock { counts in
            guard shares.allSatisfy({ (counts[$0.share] ?? 0) < $0.limit }) else { return false }
            for (share, _) in shares { counts[share, default: 0] += 1 }
            return true
        }
    }

    /// Releases an acquired slot.
    func release(_ app: String, for owner: WorkOwner) {
        let shares = Self.shares(app, owner)
        counts.withLock { counts in
            for (share, _) in shares {
                let count = (counts[share] ?? 1) - 1
                counts[share] = count > 0 ? count : nil
            }
        }
    }
}
