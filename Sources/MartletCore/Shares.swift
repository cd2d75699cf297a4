/// A capacity that owners divide, such as a partition of a store, and what one owner may have of it.
package struct ShareBounds: Sendable {
    package let entries: Int
    package let bytes: Int
    /// Longer than most of its values live: a store without a count of its own forgets a write after this time.
    let span: Duration
    /// Whether an owner has a share only; otherwise everything is for all.
    let isDivided: Bool

    /// - Parameters:
    ///   - entries: instead of the bound's.
    ///   - bytes: instead of the bound's.
    package init(_ bound: SharedBound, entries: Int? = nil, bytes: Int? = nil, span: Duration = .seconds(900)) {
        self.entries = entries ?? bound.total
        self.bytes = bytes ?? bound.bytes
        self.span = span
        isDivided = bound.terms.share != .whole
        ownEntries = bound.addressPart(of: self.entries)
        ownBytes = bound.addressPart(of: self.bytes)
    }

    /// The maximum number of entries of one owner.
    package let ownEntries: Int
    /// The maximum size of the entries of one owner.
    package let ownBytes: Int
    /// The maximum number of entries of a group of owners, such as a network of a thousand addresses.
    var groupEntries: Int { max(entries / 2, 1) }
}

extension StorePurpose {
    private var bound: SharedBound {
        switch self {
        case .general: .generalValues
        case .keys: .storedKeys
        case .throttles: .throttles
        case .bans: .bans
        case .loginLocations: .loginLocations
        case .nonces: .usedNonces
        case .codes: .usedCodes
        case .proofs: .usedProofs
        case .signatures: .usedSignatures
        case .browsers: .usedSignIns
        case .outcomes: .outcomes
        case .changes: .changes
        }
    }

    private var span: Duration {
        switch self {
        case .loginLocations: .seconds(30 * 86_400)
        case .nonces: .seconds(420)
        // Within two minutes.
        case .proofs: .seconds(75)
        // As long as a signature is accepted.
        case .signatures: .seconds(360)
        case .outcomes: .seconds(30)
        case .changes: .seconds(300)
        case .general, .keys, .throttles, .bans, .codes, .browsers: .seconds(900)
        }
    }

    var bounds: ShareBounds { ShareBounds(bound, span: span) }
}

/// What owners and groups of owners have of a capacity.
///
/// A group may have as much as is free. So a single one gets half of it, `n` that are as greedy get one part in `n + 1`
/// each, and as much is left for those that need less.
package struct Shares: Sendable {
    private struct Use: Sendable {
        var entries = 0
        var bytes = 0
    }

    private var groups: [UInt64: Use] = [:]
    private var members: [WorkOwner: Use] = [:]

    package init() {}

    /// Whether an owner may have more.
    /// - Parameters:
    ///   - entries: how many more; 0 if one that it has grows.
    ///   - free: the number of entries for which there is capacity.
    ///   - freeBytes: their size.
    package func hasCapacity(
        for owner: WorkOwner, entries: Int = 1, bytes: Int, of bounds: ShareBounds, free: Int, freeBytes: Int
    ) -> Bool {
        guard bounds.isDivided, owner != .gateway else { return true }
        let (own, group) = (members[owner] ?? Use(), groups[owner.group] ?? Use())
        return own.entries + entries <= bounds.ownEntries && own.bytes + bytes <= bounds.ownBytes
            && group.entries + entries <= free && group.bytes + bytes <= freeBytes
    }

    /// Counts what an owner has more.
    package mutating func add(entries: Int = 1, bytes: Int, of owner: WorkOwner) {
        change(by: (entries, bytes), of: owner)
    }

    /// Counts that an owner has an entry less.
    package mutating func remove(_ bytes: Int, of owner: WorkOwner) { change(by: (-1, -bytes), of: owner) }

    private mutating func change(by difference: (entries: Int, bytes: Int), of owner: WorkOwner) {
        guard owner != .gateway else { return }
        Self.change(&groups[owner.group, default: Use()], by: difference)
        Self.change(&members[owner, default: Use()], by: difference)
        if groups[owner.group]?.entries == 0 { groups[owner.group] = nil }
        if members[owner]?.entries == 0 { members[owner] = nil }
    }

    private static func change(_ use: inout Use, by difference: (entries: Int, bytes: Int)) {
        use.entries += difference.entries
        use.bytes += difference.bytes
    }
}
