import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletSession
import MartletTesting

/// A store on a clock of the test's own.
struct SessionBench {
    /// The wall clock in milliseconds.
    let now: Box<Int64>
    let revoked = Box<[UInt64]>([])
    let store: SessionStore

    init(
        backend: any SessionBackend = MemorySessions(), startingAt start: Int64 = 1_800_000_000_000,
        _ adjust: (inout SessionPolicy) -> Void = { _ in }
    ) {
        var policy = SessionPolicy()
        adjust(&policy)
        let now = Box(start)
        let revoked = revoked
        self.now = now
        store = SessionStore(policy: policy, backend: backend, clock: .reading(now)) { numbers in
            revoked.withLock { $0 += numbers }
        }
    }

    func advance(_ span: Duration) { now.withLock { $0 += span.wholeMilliseconds } }

    func login(_ subject: String = "usr_ann", provider: String = "apple") async throws -> IssuedTokens {
        try await store.create(subject: subject, provider: provider, identity: .ann)
    }

    func judge(_ token: Secret) async throws(AuthenticationError) -> ProvenSession {
        try await store.judge(
            Credential(bearer: token.bytes),
            in: AuthenticationContext(now: .init(seconds: 0), deadline: .never))
    }

    /// Why the store does not take an access token; `nil` if it does.
    func refusal(of token: Secret) async -> ErrorCode? {
        do {
            _ = try await judge(token)
            return nil
        } catch {
            return error.code
        }
    }

    /// Why the store does not take a refresh token; `nil` if it does.
    func refusal(ofRefreshing token: Secret) async -> SessionError? {
        do {
            _ = try await store.refresh(token)
            return nil
        } catch {
            return error
        }
    }
}

extension Clock {
    /// A clock that a test moves.
    static func reading(_ milliseconds: Box<Int64>) -> Clock {
        Clock(
            unixTime: { UnixTime(seconds: milliseconds.value / 1000) },
            monotonicTime: { MonotonicTime(nanoseconds: milliseconds.value &* 1_000_000) },
            unixMilliseconds: { milliseconds.value })
    }
}

extension Identity {
    static var ann: Identity {
        Identity(
            providerSubject: "000123.abc", issuer: "https://appleid.apple.com",
            claims: ["email": "ann@example.com", "email_verified": true, "name": "Ann"],
            authTime: UnixTime(seconds: 1_799_999_990), issuedAt: UnixTime(seconds: 1_799_999_995),
            expiresAt: UnixTime(seconds: 1_800_003_600))
    }
}

extension Secret {
    /// A copy: the secret's own storage is wiped with its owner.
    var bytes: [UInt8] { withBytes { $0.map { $0 } } }
    var text: String { String(decoding: bytes, as: UTF8.self) }
}
