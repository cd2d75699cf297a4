import MartletCore
import MartletTesting
import Testing

@testable import MartletRedis

/// A seal on a clock of the test's own.
private struct Stand {
    let now = Box<Int64>(1_800_000_000_000)
    let log = LogRecorder()

    var clock: Clock {
        let now = now
        return Clock(
            unixTime: { UnixTime(seconds: now.value / 1000) },
            monotonicTime: { MonotonicTime(nanoseconds: now.value &* 1_000_000) }, unixMilliseconds: { now.value })
    }

    static func key(_ byte: UInt8) -> Secret { Secret([UInt8](repeating: byte, count: StoreSeal.keyLength)) }

    func seal(_ keys: UInt8..., mode: StoreSeal.Mode = .enforce, until end: Int64? = nil) throws -> StoreSeal {
        try #require(
            StoreSeal(
                keys: keys.map(Self.key), mode: mode, acceptingUnsealedUntil: end.map { UnixTime(seconds: $0) },
                clock: clock, logger: Logger(log, minimum: .debug)))
    }

    func store(_ base: any SharedStoring, _ seal: StoreSeal, _ purpose: StorePurpose) -> any SharedStoring {
        SealedStore(base, seal: seal).partition(purpose, for: .gateway)
    }
}

private func found(_ reply: StoreReply<[UInt8]>) -> [UInt8]? {
    if case .found(let value) = reply { value } else { nil }
}

@Suite struct `A sealed store` {
    private let base = MemoryStore(clock: .system)
    private let stand = Stand()
    private let minute = Duration.seconds(60)

    private func raw(_ key: String, _ purpose: StorePurpose) async -> [UInt8]? {
        found(await base.partition(purpose, for: .gateway).value(for: key))
    }

    @Test(arguments: StorePurpose.allCases)
    func `reads what it has written, and nothing that others wrote`(purpose: StorePurpose) async throws {
        let seal = try stand.seal(1)
        let (store, plain) = (stand.store(base, seal, purpose), base.partition(purpose, for: .gateway))
        let kind = SealedKind(purpose)
        let value = Array("value".utf8)
        try await store.set(value, for: "k", lifetime: minute)
        #expect(found(await store.value(for: "k")) == value)
        let stored = try #require(await raw("k", purpose))
        #expect(seal.failures.counts[kind] == 0)
        // Planted, altered in each byte, moved, cut off.
        try await plain.set(value, for: "k", lifetime: minute)
        #expect(found(await store.value(for: "k")) == nil && seal.failures.counts[kind] == 1)
        for index in stored.indices {
            var changed = stored
            changed[index] ^= 0x10
            try await plain.set(changed, for: "k", lifetime: minute)
            #expect(found(await store.value(for: "k")) == nil, "byte \(index)")
            #expect(found(await store.take("k")) == nil, "byte \(index)")
        }
        try await plain.set(stored, for: "other", lifetime: minute)
        #expect(found(await store.value(for: "other")) == nil)
        for length in 0..<stored.count {
            try await plain.set(Array(stored.prefix(length)), for: "k", lifetime: minute)
            #expect(found(await store.value(for: "k")) == nil)
        }
        try await plain.set(stored, for: "k", lifetime: minute)
        #expect(found(await store.take("k")) == value)
        #expect(found(await store.value(for: "k")) == nil)
    }

    @Test(arguments: StorePurpose.allCases)
    func `binds values to their purpose`(purpose: StorePurpose) async throws {
        let seal = try stand.seal(1)
        try await stand.store(base, seal, purpose).set([7], for: "k", lifetime: minute)
        let stored = try #require(await raw("k", purpose))
        for other in StorePurpose.allCases where SealedKind(other) != SealedKind(purpose) {
            try await base.partition(other, for: .gateway).set(stored, for: "k", lifetime: minute)
            #expect(found(await stand.store(base, seal, other).value(for: "k")) == nil, "\(other)")
        }
    }

    @Test func `reads values of older keys and not of others`() async throws {
        try await stand.store(base, stand.seal(1), .codes).set([7], for: "k", lifetime: minute)
        try await stand.store(base, stand.seal(1), .keys).set([8], for: "k", lifetime: minute)
        for (seal, isKnown) in [(try stand.seal(2, 1), true), (try stand.seal(2), false)] {
            #expect(found(await stand.store(base, seal, .codes).value(for: "k")) == (isKnown ? [7] : nil))
            #expect(found(await stand.store(base, seal, .keys).value(for: "k")) == (isKnown ? [8] : nil))
        }
        let seal = try stand.seal(2, 1)
        try await stand.store(base, seal, .codes).set([9], for: "k", lifetime: minute)
        #expect(found(await stand.store(base, try stand.seal(2), .codes).value(for: "k")) == [9])
    }

    @Test func `uses what it only observes, and counts it`() async throws {
        let seal = try stand.seal(1, mode: .observe)
        let store = stand.store(base, seal, .codes)
        try await base.partition(.codes, for: .gateway).set([7], for: "k", lifetime: minute)
        #expect(found(await store.value(for: "k")) == [7] && seal.failures.counts[.code] == 1)
        try await store.set([7], for: "k", lifetime: minute)
        var stored = try #require(await raw("k", .codes))
        stored[stored.count - 1] = 8
        try await base.partition(.codes, for: .gateway).set(stored, for: "k", lifetime: minute)
        #expect(found(await store.value(for: "k")) == [8] && seal.failures.counts[.code] == 2)
        #expect(stand.log.lines.count == 1)
        let line = try #require(stand.log.lines.first)
        #expect(line["code"] == "store.bad_seal" && line["accepted"] == "true")
    }

    @Test func `reads unsealed values until an instant`() async throws {
        let seal = try stand.seal(1, until: 1_800_000_001)
        try await base.partition(.codes, for: .gateway).set([7], for: "k", lifetime: minute)
        #expect(found(await stand.store(base, seal, .codes).value(for: "k")) == [7])
        #expect(seal.failures.counts[.code] == 0)
        // A seal that does not verify is none that is missing.
        try await stand.store(base, try stand.seal(2), .codes).set([7], for: "other", lifetime: minute)
        #expect(found(await stand.store(base, seal, .codes).value(for: "other")) == nil)
        stand.now.withLock { $0 += 1000 }
        #expect(found(await stand.store(base, seal, .codes).value(for: "k")) == nil)
    }

    @Test func `agrees on a key in place of one that does not verify, and on nothing else`() async throws {
        let seal = try stand.seal(1)
        for purpose in StorePurpose.allCases {
            try await base.partition(purpose, for: .gateway).set([7], for: "k", lifetime: minute)
            let store = stand.store(base, seal, purpose)
            #expect(try await store.setIfAbsent([8], for: "k", lifetime: minute) == (purpose == .keys))
            #expect(try await store.setIfAbsent([9], for: "k", lifetime: minute) == false)
            #expect(found(await store.value(for: "k")) == (purpose == .keys ? [8] : nil))
        }
    }

    @Test func `removes a value of its own, whichever key sealed it`() async throws {
        for purpose in [StorePurpose.keys, .codes] {
            try await stand.store(base, stand.seal(1), purpose).set([7], for: "k", lifetime: minute)
            let store = stand.store(base, try stand.seal(2, 1), purpose)
            try await store.remove("k", ifEqualTo: [8])
            #expect(found(await store.value(for: "k")) == [7])
            try await store.remove("k", ifEqualTo: [7])
            #expect(await raw("k", purpose) == nil)
        }
    }

    @Test func `does not show what it encrypts`() async throws {
        let seal = try stand.seal(1)
        let value = [UInt8](repeating: 0x61, count: 40)
        for purpose in StorePurpose.allCases {
            try await stand.store(base, seal, purpose).set(value, for: "k", lifetime: minute)
            let stored = try #require(await raw("k", purpose))
            let isEncrypted = purpose == .keys || purpose == .outcomes || purpose == .browsers
            #expect(stored.suffix(40).elementsEqual(value) == !isEncrypted, "\(purpose)")
        }
    }

    @Test func `logs once a second`() async throws {
        let seal = try stand.seal(1)
        for _ in 0..<3 { seal.rejected(.session) }
        stand.now.withLock { $0 += 1000 }
        seal.rejected(.claims)
        let lines = stand.log.lines
        #expect(lines.count == 2 && lines[1]["unlogged"] == "2")
        #expect(seal.failures.counts[.session] == 3 && seal.failures.counts[.claims] == 1)
    }

    @Test func `has keys of 32 bytes alone`() throws {
        func isUsable(_ keys: [Secret]) -> Bool { StoreSeal(keys: keys, clock: .system, logger: .silent) != nil }
        #expect(!isUsable([]) && !isUsable([Secret([1])]) && !isUsable([Stand.key(1), Secret([])]))
        #expect(isUsable([Stand.key(1)]))
        let text = try StoreSeal.makeKeyText()
        #expect(Base64.decode(Array(text.utf8)[...], padding: .required)?.count == 32)
        #expect(try StoreSeal.makeKeyText() != text)
    }
}

@Suite struct `A sealed message` {
    private let stand = Stand()
    private let channel = Array("martlet:revoked".utf8)

    @Test func `is of its channel, its key and its time`() throws {
        let seal = try stand.seal(1)
        let message = Array("0123456789abcdef".utf8)
        let sealed = seal.seal(message: message, on: channel)
        #expect(seal.open(message: sealed, on: channel) == message)
        #expect(try stand.seal(2, 1).open(message: sealed, on: channel) == message)
        #expect(try stand.seal(2).open(message: sealed, on: channel) == nil)
        #expect(seal.open(message: sealed, on: Array("other:revoked".utf8)) == nil)
        #expect(seal.open(message: message, on: channel) == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(seal.open(message: changed, on: channel) == nil, "byte \(index)")
        }
        #expect(seal.failures.counts[.message] == sealed.count + 2)
        for seconds in [119_000, -119_000] as [Int64] {
            stand.now.withLock { $0 = 1_800_000_000_000 + seconds }
            #expect(seal.open(message: sealed, on: channel) == message)
        }
        for seconds in [121_000, -121_000, 1_800_000_000_000] as [Int64] {
            stand.now.withLock { $0 = 1_800_000_000_000 + seconds }
            #expect(seal.open(message: sealed, on: channel) == nil)
        }
    }

    @Test func `is not needed while unsealed ones are accepted`() throws {
        let message = Array("0123456789abcdef".utf8)
        #expect(try stand.seal(1, mode: .observe).open(message: message, on: channel) == message)
        #expect(try stand.seal(1, until: 1_800_000_001).open(message: message, on: channel) == message)
    }
}
