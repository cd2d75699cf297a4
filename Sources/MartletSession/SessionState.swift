internal import MartletCore

/// A session in the memory store, with the same operations as the scripts of the Redis store.
struct SessionState: Sendable {
    let subject: [UInt8]
    let revocationID: UInt64
    let ends: Int64
    private(set) var record: [UInt8]
    let listing: [UInt8]
    let providerHash: [UInt8]
    let applicationHash: [UInt8]
    let verifier: [UInt8]
    let owner: [UInt8]
    /// Its place among all sessions, by when they were created.
    var order: Int64 = 0
    private(set) var lastSeen: Int64
    private(set) var lastAddress: [UInt8]
    private var generation: Int64 = 0
    private var refreshWrap: [UInt8]
    private var access: [AccessWrap]
    private var graces: [SessionRotation.Grace] = []

    init(_ session: NewSession) {
        subject = session.subject.whole
        revocationID = session.sessionKey.revocationID
        ends = session.ends
        record = session.record
        listing = session.listing
        providerHash = session.providerHash
        applicationHash = session.applicationHash
        verifier = session.verifier
        owner = session.owner
        lastSeen = session.created
        lastAddress = session.lastAddress
        refreshWrap = session.refreshWrap
        access = [session.access]
    }

    /// The estimated memory in bytes, without what refreshes add.
    var cost: Int { record.count + listing.count + owner.count + 1024 }

    func isLive(at time: SessionTime) -> Bool { time.isLive(ends: ends, lastSeen: lastSeen) }

    mutating func touch(lastAddress: [UInt8], at time: SessionTime) {
        if time.shouldUpdateLastUse(since: lastSeen) { lastSeen = time.now }
        update(lastAddress)
    }

    private mutating func update(_ new: [UInt8]) {
        if !new.isEmpty, SealedAddress.hash(of: new) != SealedAddress.hash(of: lastAddress) { lastAddress = new }
    }

    mutating func lookUpAndTouch(tokenHash: [UInt8], lastAddress: [UInt8], at time: SessionTime) -> AccessLookup {
        guard isLive(at: time) else { return .gone }
        guard let wrap = access.first(where: { $0.tokenHash == tokenHash }) else { return .unknown }
        let found = FoundSession(record: record, wrap: wrap.sealed, expiry: wrap.expiry)
        guard time.now < wrap.expiry else { return .expired(found) }
        touch(lastAddress: lastAddress, at: time)
        return .found(found)
    }

    mutating func replace(_ replacement: RecordReplacement, at time: SessionTime) -> RecordReplacement.Outcome {
        guard isLive(at: time) else { return .gone }
        guard replacement.expected == record else { return .lost }
        record = replacement.record
        return .done
    }

    func read(tokenHash: [UInt8], claims: [UInt8], at time: SessionTime) -> RefreshLookup? {
        guard isLive(at: time) else { return nil }
        let grace = graces.first { $0.tokenHash == tokenHash }
        return RefreshLookup(
            ends: ends, lastSeen: lastSeen, generation: generation, record: record, verifier: verifier,
            refreshWrap: refreshWrap, grace: grace?.sealed, graceEnd: grace?.end, owner: owner, claims: claims)
    }

    mutating func rotate(_ rotation: SessionRotation, at time: SessionTime) -> SessionRotation.Outcome {
        guard isLive(at: time) else { return .gone }
        guard rotation.generation == generation, rotation.replacedWrap == refreshWrap,
            rotation.binding.map({ $0.expected == record }) ?? true
        else { return .lost }
        access.removeAll { $0.expiry <= time.now }
        graces.removeAll { $0.end <= time.now }
        guard access.count < SessionRotation.maximumAccessTokens,
            rotation.grace == nil || graces.count < SessionRotation.maximumGraces
        else { return .throttled }
        if rotation.cookie != nil { access = [] }
        generation += 1
        refreshWrap = rotation.refreshWrap
        if let access = rotation.access { self.access.append(access) }
        if let cookie = rotation.cookie {
            for index in graces.indices { graces[index].end = min(graces[index].end, cookie.graceEnd) }
            if let changed = cookie.record { record = changed }
        }
        if let binding = rotation.binding { record = binding.record }
        if let grace = rotation.grace { graces.append(grace) }
        lastSeen = max(lastSeen, time.now)
        update(rotation.lastAddress)
        return .done
    }
}
