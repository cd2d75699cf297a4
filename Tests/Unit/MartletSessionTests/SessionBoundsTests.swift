import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletSessionTesting
import Testing

@testable import MartletSession

/// Records forged by an attacker who can write to the store: correctly sealed, with timestamps that no gateway writes.
@Suite struct SessionBoundsTests {
    private static let now: Int64 = 1_800_000_000_000
    private static let strange: [Int64] = [.min, .min + now, -1, now + 3_661 * 86_400_000, .max]

    private let backend = MemorySessions()
    private let time = SessionTime(now: now, idle: 1_000_000, slack: 1)
    private let lookup = SubjectKey("usr_ann").tag + [UInt8](repeating: 1, count: 16)
    private var sessionKey: SessionKey { SessionKey(lookup: lookup) }
    private let verifier = [UInt8](repeating: 8, count: 32)
    private let key = [UInt8](repeating: 2, count: 32)

    private func pair() throws -> TokenPair {
        try TokenPair(lookup: lookup, verifier: verifier)
    }

    /// A record with one number changed.
    private func record(_ member: String? = nil, _ value: Int64 = 0) throws -> SessionRecord {
        let good = SessionRecord(
            subject: "usr_ann", provider: "apple", identity: .ann, created: Self.now, ends: Self.now + 1_000_000)
        var object = try #require(JSON.parse(good.bytes, limits: .init(maximumDepth: 8, maximumBytes: 9999)).object)
        switch member {
        case "ends": object["lifetime"] = .integer(value.since(good.created))
        case "auth_time": object["age"] = .integer((good.created / 1000).since(value))
        case let member?: object[member] = .integer(value)
        case nil: break
        }
        return try #require(SessionRecord(JSON.write(object)))
    }

    /// Inserts a session as a gateway would.
    private func insert(_ record: SessionRecord, _ tokens: TokenPair, sealed: [UInt8]? = nil) async throws {
        let seal = SessionSeal(sessionKey)
        let ends = Self.now + 1_000_000
        let listing = SessionListing(
            provider: "apple", created: record.created, addressKey: seal.addressKey(lookup), client: SessionClient())
        let session = NewSession(
            subject: SubjectKey("usr_ann"), sessionKey: sessionKey, created: Self.now, ends: ends,
            record: try sealed ?? seal.seal(record, with: Secret(key)),
            listing: try seal.seal(listing, of: "usr_ann"),
            providerHash: SessionSeal.providerHash("apple", of: "usr_ann"), applicationHash: [], verifier: verifier,
            refreshWrap: try seal.wrap(Secret(key), for: tokens.refresh, expiry: ends),
            access: AccessWrap(
                tokenHash: tokens.access.tokenHash, expiry: ends,
                sealed: try seal.wrap(Secret(key), for: tokens.access, expiry: ends)), lastAddress: [],
            owner: [], limit: 10, evicts: true, mark: nil, readsClaims: false)
        _ = try await backend.insert(session, at: time)
    }

    private func storedWrap() async throws -> [UInt8] {
        try #require(await backend.read(sessionKey, tokenHash: [], readsClaims: false, at: time)).refreshWrap
    }

    @Test func `a record of a later version is a miss, and stays`() async throws {
        let tokens = try pair()
        let good = try record()
        var object = try #require(JSON.parse(good.bytes, limits: .init(maximumDepth: 8, maximumBytes: 9999)).object)
        object["v"] = 2
        let sealed = try AES256SIV.seal(
            try #require(ShortForm.record.pack(JSON.write(object))), with: SealSalt.none.recordKey(Secret(key)),
            context: Array("record 0 ".utf8) + sessionKey.name)
        try await insert(good, tokens, sealed: sealed)
        let bench = SessionBench(backend: backend, startingAt: Self.now)
        #expect(await bench.rejection(of: tokens.access.text) == .sessionRecordUnreadable)
        let rejection = await bench.rejection(ofRefreshing: tokens.refresh.text)
        #expect(rejection?.code == .sessionRecordUnreadable && rejection?.kind == .invalid)
        #expect(try await bench.store.list(subject: "usr_ann").count == 1)
    }

    @Test(arguments: ["created", "ends", "auth_time"], strange)
    func `a record with an implausible timestamp is rejected`(member: String, value: Int64) async throws {
        let tokens = try pair()
        try await insert(try record(member, value), tokens)
        let bench = SessionBench(backend: backend, startingAt: Self.now)
        #expect(await bench.rejection(of: tokens.access.text) == .sessionRecordUnreadable)
        let rejection = await bench.rejection(ofRefreshing: tokens.refresh.text)
        #expect(rejection?.code == .sessionRecordUnreadable && rejection?.kind == .invalid)
        let listed = try await bench.store.list(subject: "usr_ann")
        #expect(listed.isEmpty == (member == "created"))
    }

    @Test(arguments: [true, false], strange)
    func `a reissued pair with an implausible timestamp is rejected`(isExpiry: Bool, value: Int64) async throws {
        let (tokens, next) = (try pair(), try pair())
        let (ends, seal) = (Self.now + 1_000_000, SessionSeal(sessionKey))
        try await insert(try record(), tokens)
        let issued = SessionPair(
            access: next.access.secret, accessExpiry: isExpiry ? value : ends, refresh: next.refresh.secret,
            key: Secret(key), graceEnd: isExpiry || value < Self.now ? ends : value)
        let rotation = SessionRotation(
            generation: 0, replacedWrap: try await storedWrap(),
            refreshWrap: try seal.wrap(Secret(key), for: next.refresh, expiry: ends),
            access: AccessWrap(
                tokenHash: next.access.tokenHash, expiry: ends,
                sealed: try seal.wrap(Secret(key), for: next.access, expiry: ends)),
            grace: SessionRotation.Grace(
                tokenHash: tokens.refresh.tokenHash, end: ends, sealed: try seal.seal(issued, under: tokens.refresh)),
            lastAddress: [])
        #expect(try await backend.rotate(sessionKey, rotation, at: time) == .done)
        let bench = SessionBench(backend: backend, startingAt: Self.now)
        let rejection = await bench.rejection(ofRefreshing: tokens.refresh.text)
        #expect(rejection?.code == (isExpiry || value > Self.now ? .sessionRecordUnreadable : nil))
        #expect(await bench.rejection(of: next.access.text) == nil)
    }

    @Test func `a session whose sealed expiry has passed is not reissued`() async throws {
        let (tokens, next) = (try pair(), try pair())
        let (ends, seal) = (Self.now + 1_000_000, SessionSeal(sessionKey))
        try await insert(try record("ends", Self.now - 1), tokens)
        let issued = SessionPair(
            access: next.access.secret, accessExpiry: ends, refresh: next.refresh.secret, key: Secret(key),
            graceEnd: ends)
        let rotation = SessionRotation(
            generation: 0, replacedWrap: try await storedWrap(),
            refreshWrap: try seal.wrap(Secret(key), for: next.refresh, expiry: ends),
            access: AccessWrap(
                tokenHash: next.access.tokenHash, expiry: ends,
                sealed: try seal.wrap(Secret(key), for: next.access, expiry: ends)),
            grace: SessionRotation.Grace(
                tokenHash: tokens.refresh.tokenHash, end: ends, sealed: try seal.seal(issued, under: tokens.refresh)),
            lastAddress: [])
        #expect(try await backend.rotate(sessionKey, rotation, at: time) == .done)
        let bench = SessionBench(backend: backend, startingAt: Self.now)
        #expect(await bench.rejection(ofRefreshing: tokens.refresh.text)?.code == .sessionUnknown)
    }

    @Test(arguments: strange)
    func `a provider's implausible timestamp does not break its session`(value: Int64) async throws {
        let bench = SessionBench(backend: backend, startingAt: Self.now)
        let identity = Identity(
            providerSubject: "1", issuer: "i", claims: [:], authTime: UnixTime(seconds: value),
            issuedAt: UnixTime(seconds: value), expiresAt: UnixTime(seconds: value))
        let tokens = try await bench.store.create(
            subject: "usr_ann", provider: "apple", identity: identity, client: SessionClient())
        #expect(await bench.rejection(of: tokens.accessToken) == nil)
    }

    @Test(arguments: [
        (Int64.max, Int64.min, Int64.max), (.min, .max, .min), (-2, .max, .min), (0, .min, .max), (7, 5, 2),
    ]) func `a difference saturates`(later: Int64, earlier: Int64, difference: Int64) {
        #expect(later.since(earlier) == difference)
    }
}
