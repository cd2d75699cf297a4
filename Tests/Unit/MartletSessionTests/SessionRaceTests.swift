import MartletCore
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// Sessions between whose reading and changing something else happens, once.
private struct InterruptedSessions: SessionBackend {
    let sessions = MemorySessions()
    let interruption = Box<(@Sendable () async -> Void)?>(nil)

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
        _ place: SessionPlace, mark: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> AccessReading { try await sessions.use(place, mark: mark, at: moment) }

    func read(
        _ place: SessionPlace, mark: [UInt8], at moment: SessionMoment
    ) async throws(StoreError) -> RefreshReading? { try await sessions.read(place, mark: mark, at: moment) }

    func touch(_ place: SessionPlace, at moment: SessionMoment) async throws(StoreError) {
        try await sessions.touch(place, at: moment)
    }

    func end(_ place: SessionPlace) async throws(StoreError) -> Bool { try await sessions.end(place) }

    func list(_ subject: SubjectPlace, at moment: SessionMoment) async throws(StoreError) -> [ListedSession] {
        try await sessions.list(subject, at: moment)
    }

    func end(
        _ selection: SessionSelection, of subject: SubjectPlace, at moment: SessionMoment
    ) async throws(StoreError) -> [UInt64] { try await sessions.end(selection, of: subject, at: moment) }
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
