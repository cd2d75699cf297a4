internal import MartletCore

/// A session as the memory store keeps it, with the steps that the scripts of the Redis store do likewise.
struct SessionState: Sendable {
    let subject: [UInt8]
    let number: UInt64
    let ends: Int64
    let record: [UInt8]
    let listing: [UInt8]
    let providerMark: [UInt8]
    let verifier: [UInt8]
    private(set) var lastSeen: Int64
    private(set) var note: [UInt8]
    private var generation: Int64 = 0
    private var refreshWrap: [UInt8]
    private var access: [AccessWrap]
    private var graces: [SessionRotation.Grace] = []

    init(_ session: NewSession) {
        subject = session.subject.name
        number = session.place.number
        ends = session.ends
        record = session.record
        listing = session.listing
        providerMark = session.providerMark
        verifier = session.verifier
        lastSeen = session.created
        note = session.note
        refreshWrap = session.refreshWrap
        access = [session.access]
    }

    /// What it takes at most, not counting what a refresh adds.
    var cost: Int { record.count + listing.count + 1024 }

    func isLive(at moment: SessionMoment) -> Bool { moment.isLive(ends: ends, lastSeen: lastSeen) }

    mutating func touch(note: [UInt8], at moment: SessionMoment) {
        if moment.isWorthNoting(since: lastSeen) { lastSeen = moment.now }
        keep(note)
    }

    private mutating func keep(_ new: [UInt8]) {
        if !new.isEmpty, AddressNote.mark(of: new) != AddressNote.mark(of: note) { note = new }
    }

    mutating func use(mark: [UInt8], note: [UInt8], at moment: SessionMoment) -> AccessReading {
        guard isLive(at: moment) else { return .gone }
        guard let wrap = access.first(where: { $0.mark == mark }) else { return .unknown }
        guard moment.now < wrap.expiry else { return .expired }
        touch(note: note, at: moment)
        return .found(record: record, wrap: wrap.sealed, expiry: wrap.expiry)
    }

    func read(mark: [UInt8], at moment: SessionMoment) -> RefreshReading? {
        guard isLive(at: moment) else { return nil }
        return RefreshReading(
            ends: ends, lastSeen: lastSeen, generation: generation, record: record, verifier: verifier,
            refreshWrap: refreshWrap, grace: graces.first { $0.mark == mark }?.sealed)
    }

    mutating func rotate(_ rotation: SessionRotation, at moment: SessionMoment) -> SessionRotation.Outcome {
        guard isLive(at: moment) else { return .gone }
        guard rotation.generation == generation else { return .lost }
        access.removeAll { $0.expiry <= moment.now }
        graces.removeAll { $0.end <= moment.now }
        guard access.count < SessionRotation.maximumAccessTokens,
            rotation.grace == nil || graces.count < SessionRotation.maximumGraces
        else { return .throttled }
        generation += 1
        refreshWrap = rotation.refreshWrap
        access.append(rotation.access)
        if let grace = rotation.grace { graces.append(grace) }
        lastSeen = max(lastSeen, moment.now)
        keep(rotation.note)
        return .done
    }
}
