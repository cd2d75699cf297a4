import MartletCore
import MartletProvider
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// Sessions between whose reading and changing something else happens, once.
private struct InterruptedSessions: SessionBackend {
    let sessions = MemorySessions()
    let interruption = Box<(@Sendable () async -> Void)?>(nil)
    /// Happens at every look-up of an access token.
    let lookup = Box<(@Sendable () async -> Void)?>(nil)

    func rotate(
        _ place: SessionPlace, _ rotation: SessionRotation, at moment: SessionMoment
    ) async throws(StoreError) -> SessionRotation.Outcome {
        let happening = interruption.withLock { interruption in
            defer { interruption = nil }
            return interruption
        }
        await happening?()
        return try await sessions.rotate(place, rotation, at: moment)
    }

    func insert(_ session: NewSession, at moment: SessionMoment) async throws(StoreError) -> [UInt64] {
        try await sessions.insert(session, at: moment)
    }

    func use(
        _ place: SessionPlace, mark: [UInt8], note: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> AccessReading {
        await lookup.value?()
        return try await sessions.use(place, mark: mark, note: note, at: moment)
    }

    func read(
        _ place: SessionPlace, mark: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> RefreshReading? { try await sessions.read(place, mark: mark, at: moment) }

    func touch(_ place: SessionPlace, note: [UInt8], at moment: SessionMoment) async throws(StoreError) {
        try await sessions.touch(place, note: note, at: moment)
    }

    func end(_ place: SessionPlace) async throws(StoreError) -> Bool { try await sessions.end(place) }

    func list(_ subject: SubjectPlace, at moment: SessionMoment) async throws(StoreError) -> [ListedSession] {
        try await sessions.list(subject, at: moment)
    }

    func end(
        _ selection: SessionSelection, of subject: SubjectPlace, at moment: SessionMoment
    ) async throws(StoreError) -> [UInt64] { try await sessions.end(selection, of: subject, at: moment) }
}

@Suite struct SessionLookupTests {
    private static func network(_ last: UInt8) -> ClientNetwork? {
        ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, last])
    }

    @Test func `leave the store room for other questions, and one network's leave others theirs`() async throws {
        let backend = InterruptedSessions()
        let bench = SessionBench(backend: backend)
        let token = try await bench.login().accessToken
        let (isOpen, underWay, most) = (Box(false), Box(0), Box(0))
        backend.lookup.withLock {
            $0 = {
                let now = underWay.withLock { underWay in
                    underWay += 1
                    return underWay
                }
                most.withLock { $0 = max($0, now) }
                while !isOpen.value { try? await Task.sleep(for: .milliseconds(5)) }
                underWay.withLock { $0 -= 1 }
            }
        }
        func ask(from network: ClientNetwork?) async -> ErrorCode? {
            do {
                _ = try await bench.store.judge(
                    Credential(bearer: token.withBytes { $0 }),
                    in: AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never, client: network))
                return nil
            } catch {
                return error.code
            }
        }
        let refused = Box(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<1600 {
                group.addTask {
                    if await ask(from: Self.network(1)) == "session.lookups_full" { refused.withLock { $0 += 1 } }
                }
            }
            while refused.value < 1600 - 512 - 512 { try? await Task.sleep(for: .milliseconds(5)) }
            group.addTask { #expect(await ask(from: Self.network(2)) == nil) }
            try? await Task.sleep(for: .milliseconds(50))
            isOpen.withLock { $0 = true }
        }
        #expect(refused.value == 1600 - 512 - 512 && most.value == 512)
        #expect(await ask(from: Self.network(1)) == nil)
    }
}

@Suite struct SessionRaceTests {
    private let backend = InterruptedSessions()

    @Test func `whoever is slower gets the pair of whoever was faster`() async throws {
        let bench = SessionBench(backend: backend)
        let tokens = try await bench.login()
        let faster = Box<IssuedTokens?>(nil)
        backend.interruption.withLock { interruption in
            interruption = {
                let pair = try? await bench.store.refresh(tokens.refreshToken)
                faster.withLock { $0 = pair }
            }
        }
        let slower = try await bench.store.refresh(tokens.refreshToken)
        #expect(faster.value?.refreshToken.copy == slower.refreshToken.copy)
        #expect(faster.value?.accessToken.copy == slower.accessToken.copy)
        #expect(await bench.refusal(of: slower.accessToken) == nil)
        #expect(await bench.refusal(ofRefreshing: slower.refreshToken) == nil)
    }

    @Test func `a session that ends meanwhile is not brought back`() async throws {
        let bench = SessionBench(backend: backend)
        let tokens = try await bench.login()
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.store.end(tokens.session) }
        }
        #expect(await bench.refusal(ofRefreshing: tokens.refreshToken)?.code == .sessionUnknown)
        #expect(backend.sessions.count == 0)
    }

    @Test func `without a grace the slower one shows a spent token`() async throws {
        let bench = SessionBench(backend: backend) { $0.refreshReuseGrace = .zero }
        let tokens = try await bench.login()
        backend.interruption.withLock { interruption in
            interruption = { _ = try? await bench.store.refresh(tokens.refreshToken) }
        }
        #expect(await bench.refusal(ofRefreshing: tokens.refreshToken)?.code == .sessionTokenReused)
        #expect(backend.sessions.count == 0)
    }
}
